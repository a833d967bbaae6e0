"""A PgBouncer in transaction mode in front of a test's database."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from notifier.store.database import SESSION_LIMITS
from notifier.store.embedded_ground import NOBODY_UID
from setup.pooler import find_pooler
from tests.ports import port_to_bind
from tests.running import until

SERVER_SESSIONS = 6
"""Fewer than the product's connections, so that they share them all the time."""

CONFIGURATION = """
[databases]
{name} = host={host} port={port} user={user} password={password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
ignore_startup_parameters = options, extra_float_digits
"""


def keep_session_settings(url: str) -> None:
    """Write into the database what a pooler does not pass on, as the guide for operators says."""
    name = str(conninfo_to_dict(url)["dbname"])
    with psycopg.connect(url, autocommit=True) as connection:
        for setting, value in {"search_path": "notifier", **SESSION_LIMITS}.items():
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(name), sql.Identifier(setting), sql.Literal(value)
                )
            )


@contextmanager
def running_pooler(url: str) -> Iterator[str]:
    """PgBouncer in front of the database that `url` names; the URL that leads through it."""
    program = find_pooler()
    assert program, "no PgBouncer: run make pooler, or set PGBOUNCER to the path of one"
    given = conninfo_to_dict(url)
    folder = Path(tempfile.mkdtemp(prefix="notifier-pooler-"))
    listen = port_to_bind()
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(
        CONFIGURATION.format(
            name=given["dbname"],
            host=given["host"],
            port=given["port"],
            user=given["user"],
            password=password_in(Path(str(given["passfile"])), str(given["user"])),
            listen=listen,
            sessions=SERVER_SESSIONS,
        )
    )
    uid = NOBODY_UID if os.geteuid() == 0 else os.geteuid()
    for path in (folder, configuration):
        os.chown(path, uid, -1)
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "-q", configuration],
            stdout=output,
            stderr=subprocess.STDOUT,
            user=uid if os.geteuid() == 0 else None,
            extra_groups=[] if os.geteuid() == 0 else None,
        )
    through = f"postgresql://{given['user']}@127.0.0.1:{listen}/{given['dbname']}"
    try:
        until(lambda: answers(through), 20, log.read_text)
        yield through
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder)


def answers(url: str) -> bool:
    """Whether a statement gets through."""
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def password_in(passfile: Path, user: str) -> str:
    """The user's password, from a libpq password file."""
    lines = (line.split(":") for line in passfile.read_text().splitlines())
    return next(word for *_, name, word in lines if name == user)
