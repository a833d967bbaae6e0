"""Wrong answers to a link request, byte by byte: never a link that was not given whole.

A request is asked once and uses nothing up; whatever is wrong with its answer, the notice goes
back to the queue. Nothing here can be half believed: no link, no destination, no end.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from notifier.domain.destinations import check_destination
from notifier.domain.link_faults import LinkFault
from notifier.links.auth_service import AuthService
from notifier.ports.links import LinkGone, LinkGranted, LinkUnavailable, LinkWithheld
from notifier.signatures import parse_secret
from peers.certificates import loopback_certificate
from tests.links.scripted_http import granted, http
from tests.links.test_auth_service import EMAIL, SECRET_TEXT
from tests.providers.scripted_api import Answer, ScriptedApi, api
from tests.providers.scripted_smtp import Do

ENDS = pytest.mark.parametrize("end", [Do.CLOSE, Do.RESET])
WHOLE = {
    "granted": (granted(expires_at="2026-03-14T12:00:00Z"), LinkGranted),
    "gone": (http(410, {"reason": "revoked"}), LinkGone),
    "withheld": (http(404, {"reason": "not_permitted"}), LinkWithheld),
}


@contextmanager
def service(peer: ScriptedApi, tls: ssl.SSLContext | None = None) -> Iterator[AuthService]:
    url = f"{peer.url}/links"
    opened = AuthService(url, parse_secret(SECRET_TEXT), check_destination, tls_context=tls)
    try:
        yield opened
    finally:
        opened.close()


@ENDS
@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_cut_at_any_byte_is_no_answer_and_asked_for_once(name: str, end: Do) -> None:
    whole, kind = WHOLE[name]
    cuts = iter(range(len(whole) + 1))
    with api(lambda _line: (whole[: next(cuts)], end)) as peer, service(peer) as source:
        found = [source.ask(EMAIL, 3) for _ in range(len(whole))]
        assert isinstance(source.ask(EMAIL, 3), kind)
    assert {type(each) for each in found} == {LinkUnavailable}
    assert (peer.posts(), len(peer.requests), peer.connections) == (len(whole) + 1,) * 3


@ENDS
@pytest.mark.parametrize("point", ["ACCEPT", "LINE", "HEADERS", "MID_BODY", "BODY"])
def test_a_service_that_breaks_off_while_it_is_asked_is_unavailable(point: str, end: Do) -> None:
    step: dict[str, Answer] = {point: end}
    with api(granted(), tls=None, **step) as peer, service(peer) as source:
        assert isinstance(source.ask(EMAIL, 3), LinkUnavailable)
    assert peer.connections == 1
    assert peer.posts() == (0 if point == "ACCEPT" else 1)


@pytest.mark.parametrize(
    "answer",
    [
        (b"HTTP/1.1 200 X\r\nX-Long: ", Do.DRIP),
        (b"HTTP/1.1 103 Early\r\n\r\n" * 2000, Do.HANG),
        (b"HTTP/1.1 200 X\r\n\r\n" + b"x" * 400_000, Do.HANG),
        (b"HTTP/1.1 200 X\r\nX-Long: " + b"x" * 400_000, Do.HANG),
        (b"HTTP/1.1 200 X\r\nContent-Length: -1\r\n\r\n{}", Do.CLOSE),
        (b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Do.CLOSE),
        (
            b"HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b",
            Do.CLOSE,
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", Do.CLOSE),
        b"",
    ],
)
def test_what_is_no_answer_is_unavailable_within_its_time(answer: Answer) -> None:
    with api(answer or Do.HANG) as peer, service(peer) as source:
        assert isinstance(source.ask(EMAIL, 0.4), LinkUnavailable)
    assert (peer.posts(), peer.connections) == (1, 1)


@pytest.mark.parametrize("charset", ["utf-16", "utf-32", "utf-8-sig", "cp037"])
def test_an_answer_in_another_charset_is_unavailable(charset: str) -> None:
    body = granted().partition(b"\r\n\r\n")[2].decode().encode(charset)
    with api(http(200, body)) as peer, service(peer) as source:
        assert isinstance(source.ask(EMAIL, 3), LinkUnavailable)
    assert peer.posts() == 1


@pytest.mark.parametrize("fault", [{"address": "127.0.0.9", "name": "x.test"}, {"valid_s": -60}])
def test_a_certificate_that_is_not_good_ends_it_before_a_byte(fault: dict[str, object]) -> None:
    bad = loopback_certificate(**fault)  # type: ignore[arg-type]
    with api(granted(), tls=bad.server()) as peer, service(peer, bad.client()) as source:
        assert source.ask(EMAIL, 3) == LinkUnavailable(LinkFault.TLS_FAILED)
    assert peer.posts() == 0


def test_a_service_that_nobody_serves_is_unavailable_at_once() -> None:
    with api() as peer:
        pass
    with service(peer) as source:
        assert source.ask(EMAIL, 3) == LinkUnavailable(LinkFault.NO_CONNECTION)


@ENDS
def test_a_kept_line_that_dies_with_the_next_request_is_not_asked_twice(end: Do) -> None:
    answers: Iterator[Answer] = iter([granted(), end, granted()])
    with api(lambda _line: next(answers)) as peer, service(peer) as source:
        kinds = [type(source.ask(EMAIL, 3)) for _ in range(3)]
    assert kinds == [LinkGranted, LinkUnavailable, LinkGranted]
    assert (peer.posts(), peer.connections) == (3, 2)
