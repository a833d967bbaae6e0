"""Few work at once, in the order in which they came, with their bodies read beforehand."""

from __future__ import annotations

import io
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from notifier.web.documents import CALLBACK_LIMIT
from notifier.web.gate import Gate, Places, read_body
from tests.running import until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def queued(places: Places, number: int) -> bool:
    return len(places._waiting) == number


def test_places_are_handed_on_in_the_order_in_which_they_were_asked_for() -> None:
    places, came = Places(1), []
    waiting = threading.Semaphore(0)

    def take(number: int) -> None:
        waiting.release()
        with places:
            came.append(number)

    threads = []
    with places:
        for number in range(20):
            thread = threading.Thread(target=take, args=(number,))
            thread.start()
            threads.append(thread)
            waiting.acquire()
            until(partial(queued, places, number + 1), 5, "to queue up")
    for thread in threads:
        thread.join()

    assert came == list(range(20))
    with places:
        assert not places._waiting


def test_no_more_than_so_many_work_at_once_and_health_needs_no_place() -> None:
    working, most, hold = [0], [0], threading.Event()
    lock = threading.Lock()

    def app(environ: WSGIEnvironment, _: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/healthz":
            return [b"alive"]
        with lock:
            working[0] += 1
            most[0] = max(most[0], working[0])
        hold.wait(5)
        with lock:
            working[0] -= 1
        return [b"done"]

    gate = Gate(app, 3)

    def ask(path: str) -> Iterable[bytes]:
        return gate({"PATH_INFO": path}, lambda *_: lambda _: None)

    threads = [threading.Thread(target=ask, args=("/",)) for _ in range(12)]
    for thread in threads:
        thread.start()
    until(lambda: working[0] == 3, 5, "three to work")
    assert ask("/healthz") == [b"alive"]
    hold.set()
    for thread in threads:
        thread.join()
    assert (most[0], working[0]) == (3, 0)


def after_reading(body: bytes, **environ: Any) -> WSGIEnvironment:
    given: WSGIEnvironment = {"wsgi.input": io.BufferedReader(io.BytesIO(body)), **environ}
    read_body(given)
    return given


def test_a_body_is_in_memory_before_the_gate() -> None:
    for environ in ({"CONTENT_LENGTH": "5"}, {"HTTP_TRANSFER_ENCODING": "chunked"}):
        given = after_reading(b"hello", **environ)
        assert isinstance(given["wsgi.input"], io.BytesIO)
        assert given["wsgi.input"].read() == b"hello"


def test_a_body_that_nobody_takes_is_not_read() -> None:
    for announced in ("", "0", str(CALLBACK_LIMIT + 1)):
        given = after_reading(b"hello", CONTENT_LENGTH=announced)
        assert not isinstance(given["wsgi.input"], io.BytesIO)


def test_a_body_of_unannounced_size_is_kept_to_one_byte_too_many() -> None:
    given = after_reading(b"x" * (CALLBACK_LIMIT + 50), HTTP_TRANSFER_ENCODING="chunked")
    assert len(given["wsgi.input"].read()) == CALLBACK_LIMIT + 1
