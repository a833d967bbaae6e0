"""Few work at once, in the order in which they came, with their bodies read beforehand."""

from __future__ import annotations

import io
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask

from notifier.web.documents import ADMISSION_LIMIT, CALLBACK_LIMIT, FORM_LIMIT
from notifier.web.gate import FAULT, BodyFault, Gate, Places, refuse_what_was_not_heard
from notifier.web.problems import install_problems
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


def through(body: bytes, gate: Gate | None = None, path: str = "/", **environ: str) -> Any:
    """What stands behind the gate of a request with this body."""
    seen: list[WSGIEnvironment] = []

    def app(environ: WSGIEnvironment, _: StartResponse) -> Iterable[bytes]:
        seen.append(environ)
        return []

    given = {"PATH_INFO": path, "wsgi.input": io.BufferedReader(io.BytesIO(body)), **environ}
    asked = gate or Gate(app, 1)
    asked._app = app
    asked(given, lambda *_: lambda _: None)
    return seen[0]


def test_a_body_is_in_memory_before_the_gate() -> None:
    for how in ("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"):
        given = through(b"hello", None, **{how: "5" if how == "CONTENT_LENGTH" else "chunked"})
        assert given["wsgi.input"].read() == b"hello"
        assert given["CONTENT_LENGTH"] == "5"
        assert FAULT not in given


@pytest.mark.parametrize(
    ("path", "limit"),
    [("/", FORM_LIMIT), ("/v1/reset-events", ADMISSION_LIMIT), ("/callbacks/x/", CALLBACK_LIMIT)],
)
def test_behind_the_gate_no_body_is_read_that_nobody_takes(path: str, limit: int) -> None:
    for announced in ("", "0", str(limit + 1)):
        given = through(b"x" * (limit + 1), path=path, CONTENT_LENGTH=announced)
        assert given["wsgi.input"].read() == b""
        assert given["CONTENT_LENGTH"] == announced
    whole = through(b"x" * limit, path=path, CONTENT_LENGTH=str(limit))
    assert len(whole["wsgi.input"].read()) == limit


def test_the_probe_that_needs_no_place_reads_no_body() -> None:
    assert through(b"hello", path="/healthz", CONTENT_LENGTH="5")["wsgi.input"].read() == b""


def test_a_body_of_unannounced_size_is_kept_to_one_byte_too_many() -> None:
    given = through(b"x" * (FORM_LIMIT + 50), HTTP_TRANSFER_ENCODING="chunked")
    assert len(given["wsgi.input"].read()) == int(given["CONTENT_LENGTH"]) == FORM_LIMIT + 1


def test_a_body_that_was_broken_off_is_told_from_a_whole_one() -> None:
    assert through(b"hell", CONTENT_LENGTH="5")[FAULT] is BodyFault.BROKEN_OFF


def test_only_so_many_bodies_are_waited_for_at_once() -> None:
    crowd = Gate(lambda *_: [], 1, bodies_at_once=0)
    assert through(b"hello", gate=crowd, CONTENT_LENGTH="5")[FAULT] is BodyFault.CROWDED
    assert FAULT not in through(b"", gate=crowd)
    alone = Gate(lambda *_: [], 1, bodies_at_once=1)
    for _ in range(3):
        assert FAULT not in through(b"hello", gate=alone, CONTENT_LENGTH="5")


@pytest.mark.parametrize(
    ("fault", "status"), [(BodyFault.BROKEN_OFF, 400), (BodyFault.CROWDED, 503), (None, 200)]
)
def test_nothing_is_done_for_a_request_whose_body_did_not_come(
    fault: BodyFault | None, status: int
) -> None:
    app, done = Flask("doing", static_folder=None), set()
    install_problems(app)
    refuse_what_was_not_heard(app)

    @app.post("/v1/do")
    def do() -> str:
        done.add("this")
        return "done"

    answer = app.test_client().post("/v1/do", environ_base={FAULT: fault} if fault else {})

    assert answer.status_code == status
    assert done == ({"this"} if fault is None else set())
    assert answer.headers.get("Retry-After") == ("2" if status == 503 else None)
