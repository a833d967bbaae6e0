"""Senders who announce a body and do not send it hold up nobody else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from peers.events import build_event
from tests.running import RunningApp

STALLED = 60
HEAD = (
    "POST /v1/reset-events HTTP/1.1\r\nHost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    "content-length: 500\r\n\r\n{"
)


@contextmanager
def stalled_senders(port: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(STALLED):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            line.sendall(HEAD.encode())
        yield


def test_p2_admission_and_health_answer_beside_stalled_senders(app: RunningApp) -> None:
    with stalled_senders(app.port):
        assert app.serves()
        event = build_event(mode="email_only")
        app.admit(event)
        app.settled(event["event_id"])
        assert app.readiness()[0]
