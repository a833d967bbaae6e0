"""What one POST comes to, whatever the peer does, and how many POSTs are then on the wire."""

from __future__ import annotations

import socket
import time
from contextlib import closing

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Unknown, about_us
from notifier.domain.reasons import Detail, Reason
from notifier.ports.sending import Connection
from notifier.providers.http import BaseUrl
from peers.certificates import Certificate
from tests.providers import http_sending as ways
from tests.providers.http_sending import Make, envelope_for, send
from tests.providers.scripted_api import Answer, ScriptedApi, api, reply
from tests.providers.scripted_smtp import Do

QUICK = 0.25
EACH = pytest.mark.parametrize("make", [ways.postmark, ways.resend, ways.twilio])
OK = {
    ways.postmark: ways.POSTMARK_OK,
    ways.resend: ways.RESEND_OK,
    ways.twilio: ways.TWILIO_OK,
}
LOST = Unknown(Reason.CONNECTION_LOST)
LATE = Unknown(Reason.TIMEOUT)
GARBLED = Unknown(Reason.UNREADABLE_ANSWER)


def gateway(status: int) -> Unknown:
    return Unknown(Reason.GATEWAY_ERROR, f"http_{status}")


def unreadable(status: int) -> Unknown:
    return Unknown(Reason.UNREADABLE_ANSWER, f"http_{status}")


def opened(make: Make, peer: ScriptedApi) -> Connection:
    line = make(peer.url).connect(3.0)
    assert not isinstance(line, NotAccepted)
    return line


@EACH
def test_a_message_that_is_taken_is_one_post_on_one_connection_that_is_not_kept(
    make: Make,
) -> None:
    with api(OK[make]) as peer:
        outcome = send(make(peer.url))
        assert peer.gone.wait(5)
    assert isinstance(outcome, Accepted)
    assert (peer.posts(), len(peer.requests), peer.connections) == (1, 1, 1)
    assert peer.requests[0].headers["connection"] == "close"


@EACH
def test_a_refused_connection_is_not_accepted(make: Make) -> None:
    with api() as peer:
        url = peer.url
    assert send(make(url)) == NotAccepted(Detail.UNREACHABLE)


@EACH
def test_a_name_that_leads_nowhere_is_not_accepted(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "planted")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert send(make("https://api.example.test")) == NotAccepted(Detail.UNREACHABLE)


@EACH
def test_a_peer_that_never_ends_the_handshake_is_not_accepted(
    make: Make, certificate: Certificate
) -> None:
    with api(ACCEPT=Do.HANG) as peer:
        sender = make(peer.url.replace("http:", "https:"), certificate.client())
        assert sender.connect(QUICK) == NotAccepted(Detail.TIMEOUT)
    assert peer.posts() == 0


@EACH
def test_a_peer_that_speaks_no_tls_stops_the_provider(make: Make, certificate: Certificate) -> None:
    with api(ACCEPT=(b"HTTP/1.1 400 no\r\n\r\n", Do.HANG)) as peer:
        sender = make(peer.url.replace("http:", "https:"), certificate.client())
        assert sender.connect(2) == about_us(Detail.PROVIDER_ERROR, "tls_failed")


@EACH
def test_a_certificate_that_nobody_trusts_stops_the_provider(
    make: Make, certificate: Certificate
) -> None:
    with api(OK[make], tls=certificate.server()) as peer:
        assert make(peer.url).connect(2) == about_us(Detail.PROVIDER_ERROR, "tls_certificate")
    assert peer.posts() == 0


@EACH
def test_a_message_goes_out_encrypted(make: Make, certificate: Certificate) -> None:
    with api(OK[make], tls=certificate.server()) as peer:
        assert isinstance(send(make(peer.url, certificate.client())), Accepted)
    assert (peer.posts(), peer.connections) == (1, 1)


@EACH
@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("step", [Do.CLOSE, Do.RESET, (reply(408, b"slow"), Do.CLOSE)])
def test_p3_a_line_that_is_lost_before_the_first_byte_is_not_accepted(
    make: Make, step: Answer, encrypted: bool, certificate: Certificate
) -> None:
    with api(OK[make], tls=certificate.server() if encrypted else None, GREETED=step) as peer:
        sender = make(peer.url, certificate.client())
        line = sender.connect(3.0)
        assert peer.gone.wait(5)
        outcome: object = line
        if not isinstance(line, NotAccepted):  # a reset may be seen while connecting
            with closing(line):
                outcome = line.send(envelope_for(sender))
    assert outcome == NotAccepted(Detail.UNREACHABLE)
    assert (peer.posts(), peer.connections) == (0, 1)


@EACH
@pytest.mark.parametrize("point", ["LINE", "HEADERS", "MID_BODY", "BODY"])
@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (Do.CLOSE, LOST),
        (Do.RESET, LOST),
        (Do.HANG, LATE),
        (reply(503, b"busy"), gateway(503)),
        (reply(502, b"<html>"), gateway(502)),
    ],
)
def test_p3_whatever_breaks_after_the_first_byte_is_unknown_and_posted_once(
    make: Make, point: str, step: Answer, outcome: Outcome
) -> None:
    with api(OK[make], tls=None, **{point: step}) as peer:
        assert send(make(peer.url), budget_s=20 if step is not Do.HANG else QUICK) == outcome
        assert peer.gone.wait(5)
    assert (peer.posts(), peer.connections) == (1, 1)


@EACH
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Do.CLOSE, LOST),
        (Do.RESET, LOST),
        (Do.HANG, LATE),
        ((b"HTTP/1.1 200 OK\r\nX-Long: ", Do.DRIP), LATE),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n", Do.DRIP), LATE),
        ((b"HTTP/1.1 100 Continue\r\n\r\n" * 3, Do.HANG), LATE),
        ((b"HTTP/1.1 200 OK\r\nContent-Le", Do.CLOSE), LOST),
        ((b"HTTP/1.1 200 OK\r\nContent-Le", Do.RESET), LOST),
        ((b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"Mess', Do.CLOSE), LOST),
        ((b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"Mess', Do.RESET), LOST),
        (b"OK queued\r\n\r\n", GARBLED),
        (b"\xff\xfe\x00\r\n\r\n", GARBLED),
        (b"220 mail.example.test\r\n\r\n", GARBLED),
        (reply(200, b"\x1f\x8b", "Content-Encoding: gzip"), GARBLED),
        (reply(200, b"0" * 300_000), GARBLED),
        (reply(200, b'{"Mess'), unreadable(200)),
        (reply(200, b"<html>fine</html>"), unreadable(200)),
        (reply(200, b""), unreadable(200)),
        (reply(200, [1]), unreadable(200)),
        (reply(200, {"ok": True}), unreadable(200)),
        (b"HTTP/1.1 204 X\r\n\r\n", unreadable(204)),
        *[
            (reply(status, b"<html>"), gateway(status))
            for status in (300, 302, 307, 308, 400, 401, 403, 404, 407, 408, 413, 429)
        ],
        *[(reply(status, {"error": "x"}), gateway(status)) for status in (400, 429)],
        *[(reply(status, b""), gateway(status)) for status in (500, 502, 503, 504, 520)],
    ],
)
def test_p3_without_a_whole_answer_in_its_words_the_outcome_is_unknown(
    make: Make, answer: Answer, outcome: Outcome
) -> None:
    quick = outcome == LATE
    began = time.monotonic()
    with api(answer) as peer:
        assert send(make(peer.url), budget_s=QUICK if quick else 20) == outcome
    assert time.monotonic() - began < 10
    assert (peer.posts(), len(peer.requests), peer.connections) == (1, 1, 1)


@EACH
@pytest.mark.parametrize("step", [Do.STALL, Do.CLOSE, Do.RESET])
def test_p3_a_line_that_breaks_in_the_middle_of_a_large_body_is_unknown(
    make: Make, step: Do
) -> None:
    with api(LINE=step) as peer:
        sender = make(peer.url)
        budget_s = QUICK if step is Do.STALL else 20
        outcome = send(sender, envelope_for(sender, budget_s=budget_s, padding=20_000_000))
    assert outcome == (LATE if step is Do.STALL else LOST)
    assert (peer.posts(), peer.requests, peer.connections) == (1, [], 1)


@EACH
def test_a_redirect_is_not_followed(make: Make) -> None:
    with api(OK[make]) as other:
        answer = reply(307, b"", f"Location: {other.url}/email")
        with api(answer) as peer:
            assert send(make(peer.url)) == gateway(307)
    assert (peer.posts(), other.connections) == (1, 0)


@EACH
def test_no_proxy_is_taken_from_the_environment(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with api(OK[make]) as peer, api() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert isinstance(send(make(peer.url)), Accepted)
    assert proxy.connections == 0


@EACH
def test_a_line_carries_one_message_and_is_never_opened_again(make: Make) -> None:
    with api(OK[make]) as peer:
        sender = make(peer.url)
        line = opened(make, peer)
        with closing(line):
            assert isinstance(line.send(envelope_for(sender)), Accepted)
            again = line.send(envelope_for(sender))
    assert again == NotAccepted(Detail.PROVIDER_ERROR, "line_used")
    assert (peer.posts(), peer.connections) == (1, 1)


@EACH
def test_no_time_left_means_that_not_a_byte_is_written(make: Make) -> None:
    with api(OK[make]) as peer:
        sender = make(peer.url)
        with closing(opened(make, peer)) as line:
            assert line.send(envelope_for(sender, budget_s=-1)) == NotAccepted(Detail.TIMEOUT)
        assert peer.gone.wait(5)
    assert (peer.posts(), peer.connections) == (0, 1)


@pytest.mark.parametrize(
    "url",
    ["http://api.example.test", "ftp://127.0.0.1", "https://", "https://u@h.example", "https://é"],
)
def test_an_address_that_is_not_safe_is_refused_at_start(url: str) -> None:
    with pytest.raises(ValueError, match="https, or http on loopback"):
        BaseUrl.parse(url)


def test_an_ipv6_address_keeps_its_brackets_in_the_host_header() -> None:
    assert BaseUrl.parse("http://[::1]:8025/v1/").named({})["host"] == "[::1]:8025"
    assert BaseUrl.parse("https://api.example.test").named({})["host"] == "api.example.test"
