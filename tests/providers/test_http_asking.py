"""The client of the asking side: GET alone, one time limit, and nothing but a short code."""

from __future__ import annotations

import ssl
import time

import pytest

from notifier.domain.outcome import NotAccepted, ProviderPause
from notifier.domain.reasons import Detail
from notifier.json_objects import document_of
from notifier.ports.asking import CannotTell
from notifier.providers.http import AskingHttp, BaseUrl, Told
from notifier.providers.http_words import asked_wait_s
from notifier.timed_http import MethodRefusedError
from notifier.timed_sockets import Deadline
from tests.providers import http_sending as ways
from tests.providers.http_sending import Make, send
from tests.providers.scripted_api import Answer, api, reply
from tests.providers.scripted_smtp import Do

DATE = "Date: Sun, 06 Nov 2033 08:49:37 GMT"


def client(url: str) -> AskingHttp:
    return AskingHttp(BaseUrl.parse(url), ssl.create_default_context())


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "get", "GET ", ""]
)
def test_p4_the_asking_client_refuses_anything_but_get(method: str) -> None:
    with api(reply(200, {})) as peer:
        asking = client(peer.url)
        with pytest.raises(MethodRefusedError):
            asking.request(method, "/", {}, 1.0)
        asking.close()
    assert peer.connections == 0


def test_what_is_asked_is_a_get_with_our_headers_below_the_base_address() -> None:
    with api(reply(200, {"a": 1})) as peer:
        asking = client(f"{peer.url}/v1/")
        told = asking.get("/things?x=1", {"x-key": "k"}, Deadline.after(5))
        asking.get("/things?x=2", {}, Deadline.after(5))
        asking.close()
    assert isinstance(told, Told)
    assert (told.status, told.document) == (200, {"a": 1})
    assert peer.lines == ["GET /v1/things?x=1 HTTP/1.1", "GET /v1/things?x=2 HTTP/1.1"]
    assert peer.requests[0].headers["x-key"] == "k"
    assert peer.connections == 1


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (Do.CLOSE, "not_http"),
        (Do.RESET, "connection_lost"),
        (Do.HANG, "timeout"),
        ((b"HTTP/1.1 200 OK\r\nX-Long: ", Do.DRIP), "timeout"),
        (b"junk\r\n\r\n", "not_http"),
        (reply(200, b"{"), "not_json"),
        (reply(200, b"0" * 5_000_000), "too_large"),
        (reply(200, {}, "Content-Encoding: gzip"), "encoded"),
        (reply(302, b"", "Location: /elsewhere"), "status_302"),
        (reply(503, b"<html>"), "status_503"),
    ],
)
def test_p4_trouble_while_asking_is_a_short_code_and_is_asked_once(
    answer: Answer, what: str
) -> None:
    limit_s = 0.4 if what == "timeout" else 20
    began = time.monotonic()
    with api(answer) as peer:
        asking = client(peer.url)
        assert asking.get("/", {}, Deadline.after(limit_s)) == CannotTell(what)
        asking.close()
    assert time.monotonic() - began < 10
    assert (len(peer.lines), peer.connections) == (1, 1)


def test_no_time_left_asks_nothing() -> None:
    with api(reply(200, {})) as peer:
        asking = client(peer.url)
        assert asking.get("/", {}, Deadline.after(-1)) == CannotTell("timeout")
        asking.close()
    assert peer.connections == 0


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ([], None),
        (["Retry-After: 30"], 30.0),
        (["Retry-After: 0"], 1.0),
        (["Retry-After: 86400"], 3600.0),
        (["Retry-After: " + "9" * 400], 3600.0),
        (["Retry-After: -5"], None),
        (["Retry-After: soon"], None),
        (["Retry-After: \xb2"], None),
        ([DATE, "Retry-After: Sun, 06 Nov 2033 08:51:37 GMT"], 120.0),
        ([DATE, "Retry-After: Sun, 06 Nov 2033 08:40:00 GMT"], 1.0),
        ([DATE, "Retry-After: Tue, 06 Nov 2035 08:40:00 GMT"], 3600.0),
        (["Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"], 1.0),
        (["Retry-After: Sun, 99 Nov 2033 08:49:37 GMT"], None),
    ],
)
@pytest.mark.parametrize(
    ("make", "body", "code"),
    [
        (ways.postmark, {"ErrorCode": 429, "Message": "slow down"}, "429"),
        (ways.twilio, {"code": 20429, "message": "slow down", "status": 429}, "20429"),
    ],
)
def test_a_rate_limit_in_the_providers_words_pauses_it_for_as_long_as_it_asks_within_bounds(
    make: Make, body: object, code: str, headers: list[str], wait_s: float | None
) -> None:
    answer = reply(429, body) if not headers else _with(reply(429, body), headers)
    with api(answer) as peer:
        outcome = send(make(peer.url))
    pause = ProviderPause(Detail.RATE_LIMITED, wait_s)
    assert outcome == NotAccepted(Detail.RATE_LIMITED, code, pause)
    assert peer.posts() == 1


def test_a_wait_is_read_whatever_the_answer_says_of_its_own_time() -> None:
    assert asked_wait_s({"retry-after": "7", "date": "yesterday"}) == 7.0


@pytest.mark.parametrize(
    "body", [b"[]", b'"x"', b"{", b'{"a":1,"a":2}', b"\xff", b"[" * 100_000, b"1" * 5000]
)
def test_what_is_not_one_plain_object_is_no_document(body: bytes) -> None:
    assert document_of(body) is None


def _with(answer: bytes, headers: list[str]) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    return b"\r\n".join([head, *(each.encode("latin-1") for each in headers)]) + b"\r\n\r\n" + body
