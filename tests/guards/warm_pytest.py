"""Runs pytest in forks of a process that has the libraries loaded, so that a run costs its tests.

A script that is run by its path: it must load nothing of any checkout. For each run it reads a
line of JSON (`folder`, `arguments`, `environment`, and `told`, the file for what is printed), says
the fork's process id, and then the exit status.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

LIBRARIES = """
    pytest _pytest.assertion.rewrite _pytest.junitxml _pytest.fixtures _pytest.python
    _pytest.terminal hypothesis pytest_playwright playwright.sync_api
    psycopg psycopg_pool sqlalchemy.orm sqlalchemy.dialects.postgresql alembic.command
    flask flask_sqlalchemy flask_migrate pydantic pydantic_settings structlog prometheus_client
    phonenumbers email_validator jinja2 httpcore2 uuid_utils argon2
    apscheduler.schedulers.background apscheduler.jobstores.sqlalchemy
    cryptography.hazmat.primitives.asymmetric.ed25519
""".split()  # noqa: SIM905 - a list of names reads better without quotes
LOADED_BEFORE = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


def run(folder: str, arguments: list[str], environment: dict[str, str], told: str) -> int:
    """One run, as `python -m pytest` in `folder` would make it."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, folder)
    sys.argv = ["pytest", *arguments]
    written = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(written, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    main = importlib.import_module("pytest").main
    return int(main([*LOADED_BEFORE, *arguments]))


def fork(wish: dict[str, Any]) -> int:
    """Begin a run; its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = 3
    try:
        status = run(**wish)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def say(number: int) -> None:
    """Answer."""
    os.write(1, b"%d\n" % number)


if __name__ == "__main__":
    for library in LIBRARIES:
        importlib.import_module(library)
    for line in sys.stdin:
        child = fork(json.loads(line))
        say(child)
        say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
