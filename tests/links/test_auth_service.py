"""Every shape of answer to a link request becomes one of four words, within its time."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from notifier.domain.destinations import check_destination
from notifier.domain.link_faults import LINK_FAULT_WORDS, LinkFault
from notifier.domain.reasons import Detail
from notifier.domain.states import Channel
from notifier.links.auth_service import AuthService, is_safe_url
from notifier.ports.links import (
    LinkAnswer,
    LinkGone,
    LinkGranted,
    LinkRequest,
    LinkSource,
    LinkUnavailable,
    LinkWithheld,
)
from notifier.signatures import parse_secret
from peers.certificates import loopback_certificate
from tests.links.scripted_http import ADDRESS, LINK, Answer, answering, granted, http
from tests.providers.scripted_smtp import Do

SECRET_TEXT = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EMAIL = LinkRequest("reset-1", "event-1", Channel.EMAIL)
SMS = LinkRequest("reset-1", "event-1", Channel.SMS)
LOOK_UP = LinkRequest("reset-1", "event-1", Channel.EMAIL, "look_up")
F = LinkFault


@contextmanager
def service(url: str) -> Iterator[AuthService]:
    opened = AuthService(url, parse_secret(SECRET_TEXT), check_destination)
    try:
        yield opened
    finally:
        opened.close()


def ask(answer: Answer, request: LinkRequest = EMAIL, budget_s: float = 3.0) -> LinkAnswer:
    """One question to a service that gives `answer`; it must have been asked exactly once."""
    with answering(answer) as peer, service(peer.url) as source:
        found = source.ask(request, budget_s)
    assert (len(peer.requests), peer.connections) == (1, 1)
    return found


def test_the_request_is_one_signed_post_that_an_independent_verifier_accepts() -> None:
    with answering(granted()) as peer, service(peer.url) as opened:
        source: LinkSource = opened
        source.ask(EMAIL, 3)
    ((line, headers, body),) = peer.requests
    assert line == "POST /links?tenant=1 HTTP/1.1"
    assert json.loads(body) == {
        "reset_request_id": "reset-1",
        "event_id": "event-1",
        "channel": "email",
        "purpose": "send",
    }
    Webhook(SECRET_TEXT).verify(body, headers, json_parse=False)
    assert headers["content-type"] == "application/json"


def test_each_request_has_an_id_of_its_own() -> None:
    with answering(granted()) as peer, service(peer.url) as source:
        source.ask(EMAIL, 3)
        source.ask(EMAIL, 3)
    first, second = (headers["webhook-id"] for _, headers, _ in peer.requests)
    assert first != second


def test_a_whole_answer_is_granted() -> None:
    found = ask(granted(expires_at="2026-03-14T13:00:00.5+01:00", name="Mara", more=[1]))
    assert isinstance(found, LinkGranted)
    assert found.link is not None
    assert (found.link.reveal(), found.destination.reveal()) == (LINK, ADDRESS)
    assert found.expires_at == datetime(2026, 3, 14, 12, 0, 0, 500_000, tzinfo=UTC)
    assert found.name == "Mara"


def test_optional_members_may_be_absent_or_null() -> None:
    for answer in (granted(), granted(expires_at=None, name=None)):
        found = ask(answer)
        assert isinstance(found, LinkGranted)
        assert (found.expires_at, found.name) == (None, None)


def test_a_number_is_granted_in_its_one_form() -> None:
    found = ask(granted(destination="+44 7700 900143"), SMS)
    assert isinstance(found, LinkGranted)
    assert found.destination.reveal() == "+447700900143"


def test_a_look_up_needs_the_destination_alone_and_ignores_a_link() -> None:
    for answer in (granted(reset_url=...), granted(reset_url="not a url", expires_at=7)):
        found = ask(answer, LOOK_UP)
        assert isinstance(found, LinkGranted)
        assert found.link is None


@pytest.mark.parametrize("given", ["", "nobody", "a@b", "a@example.test\n", "j\ud800@example.test"])
def test_an_address_that_no_mail_can_go_to_is_withheld(given: str) -> None:
    assert ask(granted(destination=given)) == LinkWithheld("invalid_destination")
    assert ask(granted(destination=given), LOOK_UP) == LinkWithheld("invalid_destination")


def test_an_address_in_place_of_a_number_is_withheld() -> None:
    assert ask(granted(), SMS) == LinkWithheld("invalid_destination")


@pytest.mark.parametrize("reason", ["no_destination", "not_permitted"])
def test_404_with_a_reason_is_withheld(reason: str) -> None:
    assert ask(http(404, {"reason": reason})) == LinkWithheld(reason)  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", ["used", "superseded", "revoked", "expired"])
def test_410_with_a_reason_is_gone(reason: str) -> None:
    assert ask(http(410, {"reason": reason})) == LinkGone(reason)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize(
    "body",
    [{}, {"reason": None}, {"reason": "other"}, {"reason": ["used"]}, {"reason": "USED"}, [], b""],
)
def test_404_and_410_without_a_known_reason_are_unavailable(status: int, body: object) -> None:
    fault = {404: F.HTTP_404, 410: F.HTTP_410}[status]
    assert ask(http(status, body)) == LinkUnavailable(fault, status)


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (201, F.HTTP_2XX), (202, F.HTTP_2XX), (204, F.HTTP_2XX),
        (301, F.HTTP_3XX), (302, F.HTTP_3XX), (307, F.HTTP_3XX), (308, F.HTTP_3XX),
        (400, F.HTTP_400), (401, F.HTTP_401), (403, F.HTTP_403), (418, F.HTTP_4XX),
        (429, F.HTTP_429), (500, F.HTTP_500), (503, F.HTTP_503), (511, F.HTTP_5XX),
        (799, F.HTTP_OTHER),
    ],
)  # fmt: skip
def test_any_other_status_is_unavailable_and_no_redirect_is_followed(
    status: int, fault: LinkFault
) -> None:
    with answering(granted()) as elsewhere:
        found = ask(http(status, {"reason": "used"}, f"Location: {elsewhere.url}"))
    assert found == LinkUnavailable(fault, status)
    assert elsewhere.requests == []


def test_each_fault_has_words_for_people_and_a_name_that_no_provider_word_has() -> None:
    assert set(LINK_FAULT_WORDS) == set(LinkFault)
    assert len(set(LINK_FAULT_WORDS.values())) == len(LinkFault)
    assert not {str(each) for each in LinkFault} & {str(each) for each in Detail}
    assert LINK_FAULT_WORDS[F.HTTP_401] == (
        "the auth service answered 401 when it was asked for the link"
    )


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (http(200, b""), F.NOT_JSON),
        (http(200, b"{"), F.NOT_JSON),
        (http(200, b"[]"), F.NOT_JSON),
        (http(200, b'"text"'), F.NOT_JSON),
        (http(200, b"\xff\xfe"), F.NOT_JSON),
        (
            http(200, b'{"destination": "a@example.test", "destination": "b@example.test"}'),
            F.NOT_JSON,
        ),
        (http(200, b"[" * 50_000), F.NOT_JSON),
        (http(200, b"1" * 60_000), F.NOT_JSON),
        (http(200, {"reset_url": LINK}), F.NO_DESTINATION_FIELD),
        (granted(destination=None), F.NO_DESTINATION_FIELD),
        (granted(destination=5), F.NO_DESTINATION_FIELD),
        (granted(reset_url=...), F.NO_RESET_URL_FIELD),
        (granted(reset_url=None), F.NO_RESET_URL_FIELD),
        (granted(reset_url=["x"]), F.NO_RESET_URL_FIELD),
        (granted(reset_url=""), F.NO_RESET_URL_FIELD),
        (granted(reset_url="http://accounts.example.test/r"), F.RESET_URL_NOT_HTTPS),
        (granted(reset_url=LINK + "\r\nBcc: x"), F.RESET_URL_UNUSABLE),
        (granted(reset_url=LINK + " x"), F.RESET_URL_UNUSABLE),
        (granted(reset_url=LINK + "a" * 2048), F.RESET_URL_UNUSABLE),
        (granted(reset_url=LINK + "\ud800"), F.RESET_URL_UNUSABLE),
        (granted(expires_at="2026-03-14T12:00:00"), F.EXPIRES_AT_UNREADABLE),
        (granted(expires_at="2026-03-14"), F.EXPIRES_AT_UNREADABLE),
        (granted(expires_at="2026-13-14T12:00:00Z"), F.EXPIRES_AT_UNREADABLE),
        (granted(expires_at="0001-01-01T00:00:00+14:00"), F.EXPIRES_AT_UNREADABLE),
        (granted(expires_at="tomorrow"), F.EXPIRES_AT_UNREADABLE),
        (granted(expires_at=1773489600), F.EXPIRES_AT_UNREADABLE),
        (granted(expires_at=""), F.EXPIRES_AT_UNREADABLE),
        (granted(name="n" * 65_536), F.ANSWER_TOO_LARGE),
        (http(200, b"x" * 70_000), F.ANSWER_TOO_LARGE),
        (http(200, b"\x1f\x8b", "Content-Encoding: gzip"), F.ANSWER_ENCODED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\nConnection: close\r\n\r\n{}", F.NOT_HTTP),
        (b"220 mail.example.test ESMTP\r\nConnection: close\r\n", F.NOT_HTTP),
        (Do.CLOSE, F.NOT_HTTP),
    ],
)
def test_an_answer_that_cannot_be_used_is_unavailable(answer: Answer, fault: LinkFault) -> None:
    found = ask(answer)
    assert isinstance(found, LinkUnavailable)
    assert found.fault is fault


@pytest.mark.parametrize("name", [5, [], {"a": 1}, "lone \ud800"])
def test_an_odd_name_is_left_out_and_holds_up_nothing(name: object) -> None:
    found = ask(granted(name=name))
    assert isinstance(found, LinkGranted)
    assert found.name is None


def test_nobody_listening_is_unavailable() -> None:
    with answering(granted()) as peer:
        pass
    with service(peer.url) as source:
        assert source.ask(EMAIL, 3) == LinkUnavailable(F.NO_CONNECTION)


@pytest.mark.parametrize("answer", [Do.HANG, Do.DRIP])
def test_p5_the_limit_holds_for_the_sum_of_all_reads(answer: Do) -> None:
    started = time.monotonic()
    assert ask(answer, budget_s=0.3) == LinkUnavailable(F.NO_ANSWER_IN_TIME)
    assert 0.25 < time.monotonic() - started < 2.5


def test_p5_no_budget_is_no_request() -> None:
    with answering(granted()) as peer, service(peer.url) as source:
        assert source.ask(EMAIL, 0) == LinkUnavailable(F.NO_ANSWER_IN_TIME)
    assert peer.requests == []


def test_each_fault_is_told_with_its_request_and_no_other_answer_is() -> None:
    told: list[tuple[LinkRequest, LinkUnavailable]] = []
    with answering(http(503, {})) as peer:
        source = AuthService(
            peer.url,
            parse_secret(SECRET_TEXT),
            check_destination,
            tell=lambda request, fault: told.append((request, fault)),
        )
        source.ask(LOOK_UP, 3)
        peer.answer = granted()
        source.ask(EMAIL, 3)
        source.close()
    assert told == [(LOOK_UP, LinkUnavailable(F.HTTP_503, 503))]


def test_connections_are_kept_and_shared_between_threads() -> None:
    with answering(granted()) as peer, service(peer.url) as source:
        found: list[LinkAnswer] = []
        both = threading.Barrier(4)

        def several() -> None:
            both.wait()
            found.extend(source.ask(EMAIL, 3) for _ in range(10))

        threads = [threading.Thread(target=several) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [type(each) for each in found] == [LinkGranted] * 40
    assert len(peer.requests) == 40
    assert peer.connections <= 4


def test_a_connection_that_was_closed_meanwhile_is_replaced() -> None:
    with answering(granted()) as peer, service(peer.url) as source:
        assert isinstance(source.ask(EMAIL, 3), LinkGranted)
        peer.answer = http(200, {"reset_url": LINK, "destination": ADDRESS}, "Connection: close")
        assert isinstance(source.ask(EMAIL, 3), LinkGranted)
        assert isinstance(source.ask(EMAIL, 3), LinkGranted)
    assert (peer.connections, len(peer.requests)) == (2, 3)


def test_the_certificate_of_the_auth_service_is_verified() -> None:
    ours, other = loopback_certificate(), loopback_certificate()
    secret = parse_secret(SECRET_TEXT)
    with answering(granted(), ours.server()) as peer:
        good = AuthService(peer.url, secret, check_destination, tls_context=ours.client())
        bad = AuthService(peer.url, secret, check_destination, tls_context=other.client())
        assert isinstance(good.ask(EMAIL, 3), LinkGranted)
        assert bad.ask(EMAIL, 3) == LinkUnavailable(F.TLS_FAILED)
        good.close()
    assert len(peer.requests) == 1


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        (LINK, True),
        ("http://127.0.0.1:8025/r?t=1", True),
        ("http://localhost/r", True),
        ("http://[::1]:80/r", True),
        ("https://example.test", True),
        ("http://example.test/r", False),
        ("http://127.0.0.1.example.test/r", False),
        ("http://localhost.example.test/r", False),
        ("https://bank.test@evil.test/r", False),
        ("https:///r", False),
        ("//example.test/r", False),
        ("javascript:alert(1)", False),
        ("ftp://example.test/r", False),
        ("https://example.test:99999/r", False),
        ("https://[::1/r", False),
        ("https://bücher.test/r", False),
        ('https://example.test/"><b>', False),
        ("https://example.test/\u202egnp", False),
        ("https://example.test/\n", False),
        ("", False),
    ],
)
def test_only_whole_https_links_in_plain_characters_are_passed_on(url: str, *, safe: bool) -> None:
    assert is_safe_url(url) is safe


def test_a_link_service_in_clear_is_refused_at_start() -> None:
    with pytest.raises(ValueError, match="must be https"):
        AuthService("http://auth.example.test/links", b"k", check_destination)


@pytest.mark.parametrize(
    "answer",
    [
        granted(),
        granted(reset_url=f"{LINK} x"),
        granted(destination=f"{ADDRESS}\n"),
        granted(expires_at=f"{LINK}"),
        http(500, {"detail": f"{LINK} {ADDRESS}"}),
        http(404, {"reason": LINK}),
        http(200, f"{LINK} {ADDRESS}".encode()),
        b"HTTP/1.1 200 " + LINK.encode() + b"\r\nbroken header\r\nConnection: close\r\n\r\n",
    ],
)
def test_p7_no_answer_or_log_shows_the_link_or_the_address(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = f"{ask(answer)!r} {caplog.text}"
    assert not re.search("planted|5519|7261", shown)
