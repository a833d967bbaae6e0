"""The runner's child: waited for, understood when it fails, and always ended.

The program here is not the product but a small one that behaves as each test needs; it
listens on a real socket and gets real signals.
"""

from __future__ import annotations

import socket
import subprocess
import textwrap
import threading
from contextlib import closing
from pathlib import Path

import pytest

from peers import app_process
from peers.app_process import AppProcess, NotStarted
from peers.run import exports, free_port
from tests.ports import port_to_bind

READY = """
    import http.server, os, signal, sys

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/readyz" else 404)
            self.end_headers()

    server = http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer)
"""
ORDERLY = (
    READY
    + """
    def end(*_):
        print("ended in order", flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    server.serve_forever()
"""
)
STUBBORN = (
    READY
    + """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server.serve_forever()
"""
)
BROKEN = """
    import sys
    sys.exit("NOTIFIER_SECRET_KEY is not set; it wants a random text")
"""

TAKEN = """
    import click, flask

    app = flask.Flask("app")

    @app.cli.group()
    def users(): pass

    @users.command()
    @click.argument("name")
    @click.option("--role")
    def add(name, role): raise click.ClickException("the name is taken")

    @users.command()
    @click.argument("name")
    def link(name): click.echo("http://here/login/link/fresh")
"""


class Program:
    """A folder with an `app.py`, and a port for it."""

    def __init__(self, root: Path) -> None:
        self.root, self.log = root, root / "app.log"
        self.port = port_to_bind()

    def process(self, source: str) -> AppProcess:
        (self.root / "app.py").write_text(textwrap.dedent(source))
        url = f"http://127.0.0.1:{self.port}"
        return AppProcess({"PORT": str(self.port)}, url, self.log, root=self.root)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_an_app_is_waited_for_and_ended_in_order(program: Program) -> None:
    with closing(program.process(ORDERLY)) as app:
        app.start()
        app.wait_until_ready(threading.Event())
        assert not app.ended()
    assert app.ended()
    assert "ended in order" in program.log.read_text()


def test_a_second_start_keeps_what_the_first_one_said_and_quotes_its_own_words_alone(
    program: Program,
) -> None:
    with closing(program.process(ORDERLY)) as app:
        app.start()
        app.wait_until_ready(threading.Event())
    first = program.log.read_text()
    with closing(program.process(BROKEN)) as again:
        again.start()
        with pytest.raises(NotStarted) as trouble:
            again.wait_until_ready(threading.Event())
    assert program.log.read_text().startswith(first)
    assert "NOTIFIER_SECRET_KEY is not set" in program.log.read_text()
    assert "ended in order" in first
    assert "ended in order" not in str(trouble.value)


def test_an_app_that_will_not_end_is_killed(program: Program) -> None:
    app = program.process(STUBBORN)
    app.start()
    app.wait_until_ready(threading.Event())
    app.close(within_s=0.2)
    assert app.ended()


def test_an_app_that_fails_to_start_is_quoted(program: Program) -> None:
    with closing(program.process(BROKEN)) as app:
        app.start()
        with pytest.raises(NotStarted, match="NOTIFIER_SECRET_KEY is not set"):
            app.wait_until_ready(threading.Event())


def test_a_runner_told_to_stop_does_not_wait_for_readiness(program: Program) -> None:
    stop = threading.Event()
    stop.set()
    with closing(program.process("import time; time.sleep(60)")) as app:
        app.start()
        app.wait_until_ready(stop)
    assert app.ended()


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) > port


def test_a_command_that_does_not_end_is_told_in_words(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_process, "COMMAND_WITHIN_S", 0.3)
    slow = program.process("import time; time.sleep(60)")
    with pytest.raises(NotStarted, match="users add admin --role admin took more than"):
        slow.sign_in_link("admin", "admin")


def test_the_settings_can_be_taken_over_by_a_shell_whatever_they_hold(tmp_path: Path) -> None:
    file = tmp_path / "env.sh"
    held = {"NOTIFIER_ONE": "whsec_a+b/c==", "NOTIFIER_TWO": "it's $HOME; `id` \\n"}
    file.write_text(exports(held))
    told = subprocess.run(
        ["/bin/sh", "-c", '. "$0" && printf "%s|%s" "$NOTIFIER_ONE" "$NOTIFIER_TWO"', str(file)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout == "|".join(held.values())


def test_an_account_of_an_earlier_run_gets_a_fresh_link_and_no_twin(program: Program) -> None:
    link = program.process(TAKEN).sign_in_link("admin", "admin")
    assert link == "http://here/login/link/fresh  (admin)"
