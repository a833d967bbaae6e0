"""One address, one process: whoever comes second is told so and ends."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from notifier.serving import hold
from notifier.setting_values import Bind
from peers.app_process import ROOT
from tests.ports import port_to_bind
from tests.running import RunningApp, surroundings, until
from tests.story.conftest import StartAlone


def started(environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=ROOT, env=environment, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def last_words(process: subprocess.Popen[str]) -> str:
    with process:
        try:
            _, said = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()  # it serves, and its child goes with it
            raise
    assert process.returncode == 1, said
    return said


def test_a_second_process_at_the_address_of_one_that_serves_ends_and_says_why(
    app: RunningApp,
) -> None:
    said = last_words(started(app.around.environment(app.port)))

    assert said.splitlines()[-1] == (
        f"NOTIFIER_BIND cannot be used (127.0.0.1:{app.port} is taken by another process); "
        "stop that one, or choose another port"
    )
    assert "Traceback" not in said
    assert app.readiness()[0]


@pytest.mark.parametrize("shares", [False, True])
def test_an_address_that_somebody_else_listens_at_is_taken_even_if_he_would_share_it(
    app: RunningApp, shares: bool
) -> None:
    with socket.socket() as other:
        if shares:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert "NOTIFIER_BIND cannot be used" in last_words(started(app.around.environment(port)))


def test_of_two_that_start_at_once_one_serves_and_the_other_ends(
    database_url: str, tmp_path: Path
) -> None:
    port = port_to_bind()
    with ExitStack() as stack:
        around = stack.enter_context(surroundings(database_url, tmp_path))
        both = [stack.enter_context(started(around.environment(port))) for _ in range(2)]
        for each in both:
            stack.callback(each.terminate)
        until(lambda: any(each.poll() is not None for each in both), 60, "one of them to end")
        (loser,) = [each for each in both if each.poll() is not None]
        (winner,) = [each for each in both if each is not loser]
        assert loser.stderr is not None
        assert "NOTIFIER_BIND cannot be used" in loser.stderr.read()
        assert loser.returncode == 1
        until(lambda: answers(port), 60, "the other to serve")
        winner.send_signal(signal.SIGTERM)
        winner.communicate(timeout=60)
        assert winner.returncode == 0


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def test_a_process_starts_at_once_where_the_one_before_it_hung_up_on_somebody(
    start_alone: StartAlone,
) -> None:
    running = start_alone()
    with socket.create_connection(("127.0.0.1", running.port)) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert line.recv(64).startswith(b"HTTP/1.1 200")
        running.signal(signal.SIGTERM)
        running.wait_until_gone()
        running.start()
        running.wait_until_ready()


def test_an_address_that_is_not_of_this_machine_is_told_with_its_setting(app: RunningApp) -> None:
    elsewhere = {"NOTIFIER_BIND": "192.0.2.1:8000", "NOTIFIER_BIMD": "a slip"}

    said = last_words(started(app.around.environment(1) | elsewhere))

    assert said.splitlines()[-1] == (
        "NOTIFIER_BIND cannot be used (192.0.2.1:8000: Cannot assign requested address); "
        "it wants host:port of this machine"
    )
    assert '"setting": "NOTIFIER_BIMD"' in said
    assert "a slip" not in said


def test_an_address_of_version_six_can_be_held() -> None:
    with hold(Bind("::1", 0)) as held:
        assert held.family is socket.AF_INET6
        assert not os.get_inheritable(held.fileno())
