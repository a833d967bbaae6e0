"""Senders who announce a body and do not send it hold up nobody else."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from notifier.serving import CONNECTIONS, REQUESTS_AT_ONCE
from notifier.silent_lines import LOOK_EVERY_S, SILENT_S
from notifier.web.documents import ADMISSION_LIMIT, CALLBACK_LIMIT, FORM_LIMIT
from notifier.web.gate import BODIES_AT_ONCE, PLACES_ASIDE
from peers.events import build_event
from tests.running import RunningApp, until

STALLED = 60
EVENT = (
    "POST /v1/reset-events HTTP/1.1\r\nHost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    "content-length: 500\r\n\r\n{"
)
FORM = "Host: {host}\r\nContent-Type: multipart/form-data; boundary=x\r\n"
PART = '--x\r\nContent-Disposition: form-data; name="username"\r\n\r\n'


@contextmanager
def stalled_senders(port: int, number: int, sent: str) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        lines = []
        for _ in range(number):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            line.sendall(sent.replace("{host}", f"127.0.0.1:{port}").encode())
            lines.append(line)
        yield lines


def asked(app: RunningApp, method: str, path: str, body: bytes = b"", kind: str = "") -> str:
    """The status and the type of an answer, in one text."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=10)
    try:
        connection.request(method, path, body or None, {"Content-Type": kind} if kind else {})
        answer = connection.getresponse()
        answer.read()
        return f"{answer.status} {answer.headers.get_content_type()}"
    finally:
        connection.close()


def announced(length: int, path: str = "/login", method: str = "POST") -> str:
    """A head and a bit of a body; `{host}` is filled in when it is sent."""
    return f"{method} {path} HTTP/1.1\r\n{FORM}Content-Length: {length}\r\n\r\n{PART}"


def test_p2_admission_and_health_answer_beside_stalled_senders(app: RunningApp) -> None:
    with stalled_senders(app.port, STALLED, EVENT):
        assert app.serves()
        event = build_event(mode="email_only")
        app.admit(event)
        app.settled(event["event_id"])
        assert app.readiness()[0]


@pytest.mark.parametrize(
    "sent",
    [
        announced(CALLBACK_LIMIT + 50_000),
        announced(FORM_LIMIT),
        announced(CALLBACK_LIMIT + 50_000, "/callbacks/postmark/x"),
        announced(CALLBACK_LIMIT + 50_000, "/v1/reset-events"),
        announced(CALLBACK_LIMIT + 50_000, "/nowhere", "PUT"),
        announced(CALLBACK_LIMIT + 50_000, "/readyz", "GET"),
        f"POST /login HTTP/1.1\r\n{FORM}Transfer-Encoding: chunked\r\n\r\n40\r\n{PART}",
    ],
    ids=["huge", "small", "callback", "event", "nowhere", "readyz", "chunked"],
)
def test_p2_nobody_waits_for_a_sender_at_a_place_among_those_who_work(
    app: RunningApp, sent: str
) -> None:
    with stalled_senders(app.port, max(REQUESTS_AT_ONCE, PLACES_ASIDE), sent):
        app.admit(build_event(mode="email_only"))
        assert asked(app, "GET", "/login") == "200 text/html"
        assert asked(app, "GET", "/metrics") == "200 text/plain"
        assert app.readiness()[0]


def test_p2_probes_and_pages_answer_beside_more_stalled_senders_than_are_waited_for(
    app: RunningApp,
) -> None:
    assert BODIES_AT_ONCE < CONNECTIONS
    with stalled_senders(app.port, CONNECTIONS + STALLED, announced(FORM_LIMIT)) as lines:
        assert asked(app, "GET", "/healthz") == "200 application/json"
        assert asked(app, "GET", "/login") == "200 text/html"
        # Whoever came too late is told so at once, and may come again.
        told = lines[-1].recv(65536).decode()
        assert told.startswith("HTTP/1.1 503 "), told
        assert "retry-after: 2\r\n" in told
        began = time.monotonic()
        assert all(line.recv(1) == b"" for line in hushed(lines[:REQUESTS_AT_ONCE]))
        assert time.monotonic() - began < SILENT_S + 2 * LOOK_EVERY_S + 5
    until(lambda: app.post(build_event(mode="email_only")).status == 202, 20, "all to be gone")


def hushed(lines: list[socket.socket]) -> Iterator[socket.socket]:
    for line in lines:
        line.settimeout(SILENT_S + 20)
        yield line


@pytest.mark.parametrize(
    ("path", "limit", "status", "kind"),
    [
        ("/login", FORM_LIMIT, 413, "text/html"),
        ("/v1/reset-events", ADMISSION_LIMIT, 413, "application/problem+json"),
        ("/callbacks/postmark/x", CALLBACK_LIMIT, 404, "application/problem+json"),
    ],
)
def test_a_body_beyond_the_limit_of_its_path_is_refused_unread(
    app: RunningApp, path: str, limit: int, status: int, kind: str
) -> None:
    """Here nothing but the head is ever sent: whoever reads the body first gives no answer."""
    (answer,) = answers(app, announced(limit + 1, path))
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert f"content-type: {kind}" in answer


def answers(app: RunningApp, sent: str) -> list[str]:
    with stalled_senders(app.port, 1, sent) as (line,):
        line.settimeout(10)
        return [line.recv(65536).decode()]


def test_a_form_beyond_the_limit_is_answered_413_in_either_encoding(app: RunningApp) -> None:
    form = b"username=" + b"a" * FORM_LIMIT
    parts = f"{PART}{'a' * FORM_LIMIT}\r\n--x--\r\n".encode()
    assert asked(app, "POST", "/login", form, "application/x-www-form-urlencoded").startswith("413")
    assert asked(app, "POST", "/login", parts, "multipart/form-data; boundary=x").startswith("413")
