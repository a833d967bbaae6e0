"""Lets few requests work at once, and none of them wait for its sender while it does.

The server gives each connection a thread. A sender on a bad line, or a hostile one, can hold its
thread for as long as it likes by announcing a body and not sending it; so bodies are read here,
before the gate, where waiting costs a thread and nothing else. Behind the gate run only as many
requests as the interpreter can serve side by side; `/healthz` needs no place among them, and
`/readyz` has some of its own, so that both answer while everybody else waits for the database.
"""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from notifier.web.documents import CALLBACK_LIMIT

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ALWAYS_OPEN: Final = frozenset({"/healthz"})
ASIDE: Final = frozenset({"/readyz"})
PLACES_ASIDE: Final = 2


class Gate:
    """WSGI middleware: `at_once` requests work, the others wait with their bodies read."""

    def __init__(self, app: WSGIApplication, at_once: int) -> None:
        self._app = app
        self._places = Places(at_once)
        self._aside = Places(PLACES_ASIDE)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        path = environ.get("PATH_INFO")
        if path in ALWAYS_OPEN:
            return self._app(environ, start_response)
        read_body(environ)
        with self._aside if path in ASIDE else self._places:
            return self._app(environ, start_response)


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


def read_body(environ: WSGIEnvironment) -> None:
    """Put the whole body into memory, where it is no longer than any that is taken.

    A longer one is left as it is: the application refuses it by what it announces, or by the
    first byte too many.
    """
    announced = environ.get("CONTENT_LENGTH") or ""
    if announced.isdecimal() and int(announced) > CALLBACK_LIMIT:
        return
    is_chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
    if not is_chunked and announced in {"", "0"}:
        return
    body = environ["wsgi.input"].read(CALLBACK_LIMIT + 1)
    environ["wsgi.input"] = io.BytesIO(body)
