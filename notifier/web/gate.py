"""Lets few requests work at once, and none of them wait for its sender while it does.

The server gives each connection a thread. A sender on a bad line, or a hostile one, can hold its
thread for as long as anything moves by announcing a body and not sending it; so bodies are read
here, before the gate, where waiting costs a thread and nothing else. What is not read here is
read nowhere: behind the gate stands a body in memory, or none. So many are waited for that some
threads are left for requests without a body. Behind the gate run only as many requests as the
interpreter can serve side by side; `/healthz` needs no place among them, and `/readyz` has some
of its own, so that both answer while everybody else waits for the database.
"""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from flask import Flask, request
from werkzeug.exceptions import BadRequest, ServiceUnavailable

from notifier.web.documents import ADMISSION_LIMIT, CALLBACK_LIMIT, FORM_LIMIT
from notifier.web.problems import RETRY_AFTER_S

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

ALWAYS_OPEN: Final = frozenset({"/healthz"})
ASIDE: Final = frozenset({"/readyz"})
PLACES_ASIDE: Final = 2
BODIES_AT_ONCE: Final = 192
"""Bodies waited for at once, fewer than connections are taken."""

LIMITS: Final = {"/v1/": ADMISSION_LIMIT, "/callbacks/": CALLBACK_LIMIT}
"""Largest body under each beginning of a path, bytes; it is `FORM_LIMIT` under all others."""

FAULT: Final = "notifier.body_fault"


class BodyFault(StrEnum):
    """Why a request goes on without the body that it announced."""

    CROWDED = "crowded"
    """As many bodies were waited for as may be: the sender may come again."""
    BROKEN_OFF = "broken_off"
    """The sender stopped, or was cut off, before the end."""


class Gate:
    """WSGI middleware: `at_once` requests work, the others wait with their bodies read."""

    def __init__(
        self, app: WSGIApplication, at_once: int, bodies_at_once: int = BODIES_AT_ONCE
    ) -> None:
        self._app = app
        self._places = Places(at_once)
        self._aside = Places(PLACES_ASIDE)
        self._bodies = threading.Semaphore(bodies_at_once)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        path = environ.get("PATH_INFO", "")
        sent, environ["wsgi.input"] = environ.get("wsgi.input"), io.BytesIO()
        if path in ALWAYS_OPEN:
            return self._app(environ, start_response)
        if sent is not None and has_body(environ, limit_of(path)):
            self._take_in(environ, sent, limit_of(path))
        with self._aside if path in ASIDE else self._places:
            return self._app(environ, start_response)

    def _take_in(self, environ: WSGIEnvironment, sent: InputStream, limit: int) -> None:
        if not self._bodies.acquire(blocking=False):
            environ[FAULT] = BodyFault.CROWDED
            return
        try:
            read_body(environ, sent, limit)
        finally:
            self._bodies.release()


class Places:
    """So many places, handed on in the order in which they were asked for.

    A semaphore lets a newcomer take a place before those who were woken for it, and whoever
    is overtaken often enough is the slowest answer of all.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1


def limit_of(path: str) -> int:
    """The largest body that anything at `path` takes, bytes."""
    return next((size for start, size in LIMITS.items() if path.startswith(start)), FORM_LIMIT)


def has_body(environ: WSGIEnvironment, limit: int) -> bool:
    """Whether there is a body to be read.

    One that is announced as too large is left unread: the application refuses it by that.
    """
    if _is_chunked(environ):
        return True
    announced = environ.get("CONTENT_LENGTH") or ""
    return announced.isdecimal() and 0 < int(announced) <= limit


def read_body(environ: WSGIEnvironment, sent: InputStream, limit: int) -> None:
    """Put the whole body into memory, or one byte too many of one of unannounced size.

    Either has a length from here on, by which the application can refuse it.
    """
    body = sent.read(limit + 1)
    if not _is_chunked(environ) and len(body) != int(environ["CONTENT_LENGTH"]):
        environ[FAULT] = BodyFault.BROKEN_OFF
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ["CONTENT_LENGTH"] = str(len(body))
    environ["wsgi.input"] = io.BytesIO(body)


def refuse_what_was_not_heard(app: Flask) -> None:
    """Answer requests whose body did not come (`BodyFault`) before anything is done for them."""

    @app.before_request
    def look() -> None:
        match request.environ.get(FAULT):
            case BodyFault.CROWDED:
                raise ServiceUnavailable(retry_after=RETRY_AFTER_S)
            case BodyFault.BROKEN_OFF:
                raise BadRequest


def _is_chunked(environ: WSGIEnvironment) -> bool:
    return "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
