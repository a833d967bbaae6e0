"""Wrong answers of a mail server, byte by byte: how often it then holds the message."""

from __future__ import annotations

import ssl

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.ports.sending import Envelope
from notifier.providers.smtp import SmtpAccount, SmtpSender
from peers.certificates import loopback_certificate
from tests.providers.conftest import make_envelope
from tests.providers.scripted_smtp import USUAL, Do, Step, scripted
from tests.providers.smtp_sending import QUICK, send, sender_to
from tests.providers.test_smtp_opening import OFFERS_TLS, about_us

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
FINAL = b"250-2.0.0 queued\r\n250 2.0.0 as 4711\r\n"
ENDS = pytest.mark.parametrize("end", [Do.CLOSE, Do.RESET])
PHASES = ("BANNER", "EHLO", "MAIL", "RCPT", "DATA")


def plain(port: int) -> SmtpSender:
    """A sender that does not load the system's authorities, which takes longer than a drill."""
    account = SmtpAccount("127.0.0.1", port, "plain")
    return SmtpSender(account, "noreply@reset.example", 5.0, 5.0, tls_context=NO_TLS)


@ENDS
def test_p3_a_final_reply_cut_at_any_byte_is_unknown_and_the_message_was_taken_once(
    end: Do, envelope: Envelope
) -> None:
    for cut in range(len(FINAL)):
        with scripted(END=(FINAL[:cut], end)) as peer:
            outcome = send(plain(peer.port), envelope)
        assert (cut, outcome) == (cut, Unknown(Reason.CONNECTION_LOST))
        assert (peer.connections, len(peer.held), peer.verbs().count("DATA")) == (1, 1, 1)


@pytest.mark.parametrize("cut", [0, 1, 3, 4, 18, 19, len(FINAL) - 2, len(FINAL) - 1])
def test_p3_a_final_reply_that_stalls_at_any_byte_is_unknown(cut: int, envelope: Envelope) -> None:
    with scripted(END=(FINAL[:cut], Do.HANG)) as peer:
        outcome = send(sender_to(peer.port, final_reply_timeout_s=QUICK), envelope)
    assert outcome == Unknown(Reason.TIMEOUT)
    assert (peer.connections, len(peer.held)) == (1, 1)


@pytest.mark.parametrize("refusal", [b"554 5.6.0 no\r\n", b"451 4.3.0 later\r\n"])
@ENDS
def test_p3_a_refusal_after_the_dot_that_is_cut_is_no_refusal(
    refusal: bytes, end: Do, envelope: Envelope
) -> None:
    for cut in range(1, len(refusal)):
        with scripted(END=(refusal[:cut], end)) as peer:
            outcome = send(plain(peer.port), envelope)
        assert (cut, outcome) == (cut, Unknown(Reason.CONNECTION_LOST))
        assert peer.connections == 1


@ENDS
@pytest.mark.parametrize("phase", PHASES)
def test_a_reply_before_the_dot_cut_at_any_byte_is_not_accepted(
    phase: str, end: Do, envelope: Envelope
) -> None:
    usual = USUAL[phase]
    assert isinstance(usual, bytes)
    for cut in range(len(usual)):
        with scripted({phase: (usual[:cut], end)}) as peer:
            outcome = send(plain(peer.port), envelope)
        assert (cut, outcome) == (cut, NotAccepted(Detail.UNREACHABLE))
        assert (peer.connections, peer.held) == (1, [])


@ENDS
def test_a_server_that_breaks_off_inside_a_small_text_never_makes_it_two(end: Do) -> None:
    """All of it may have been on the way by then, so that not even "not accepted" is certain."""
    with scripted(TEXT=end) as peer:
        outcome = send(plain(peer.port), make_envelope())
    assert outcome in (NotAccepted(Detail.UNREACHABLE), Unknown(Reason.CONNECTION_LOST))
    assert (peer.connections, peer.held, peer.verbs().count("DATA")) == (1, [], 1)


WRONG_FINAL: dict[str, tuple[Step, Outcome]] = {
    "another protocol": (b"HTTP/1.1 200 OK\r\n\r\n", Unknown(Reason.UNREADABLE_ANSWER)),
    "no code": (b"queued\r\n", Unknown(Reason.UNREADABLE_ANSWER)),
    "two digits": (b"25 ok\r\n", Unknown(Reason.UNREADABLE_ANSWER)),
    "four digits": (b"2500 ok\r\n", Unknown(Reason.UNREADABLE_ANSWER)),
    "other digits": ("٢٥٠ ok\r\n".encode(), Unknown(Reason.UNREADABLE_ANSWER)),
    "codes that differ": (b"250-a\r\n554 b\r\n", Unknown(Reason.UNREADABLE_ANSWER)),
    "lines without an end": (b"250-a\r\n" * 5000, Unknown(Reason.UNREADABLE_ANSWER)),
    "a line of ages": (b"250 " + b"a" * 100_000 + b"\r\n", Unknown(Reason.UNREADABLE_ANSWER)),
    "a code of no class": (b"650 ok\r\n", Unknown(Reason.UNREADABLE_ANSWER)),
    "information": (b"150 soon\r\n", Unknown(Reason.UNREADABLE_ANSWER)),
}


@pytest.mark.parametrize("name", WRONG_FINAL)
def test_p3_a_final_reply_that_is_none_is_unknown_and_sent_once(
    name: str, envelope: Envelope
) -> None:
    step, expected = WRONG_FINAL[name]
    with scripted(END=(step, Do.CLOSE) if isinstance(step, bytes) else step) as peer:
        outcome = send(plain(peer.port), envelope)
    assert isinstance(outcome, Unknown)
    assert isinstance(expected, Unknown)
    assert (name, outcome.reason) == (name, expected.reason)
    assert (peer.connections, len(peer.held), peer.verbs().count("DATA")) == (1, 1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        b"250 \xff\xfe latin\r\n",
        b"250 2.0.0 gr\xc3\xbc\xc3\x9fe\r\n",
        b"250\r\n",
        b"250-\r\n250 \r\n",
    ],
)
def test_a_yes_in_any_charset_is_a_yes(answer: bytes, envelope: Envelope) -> None:
    with scripted(END=answer) as peer:
        outcome = send(plain(peer.port), envelope)
    assert isinstance(outcome, Accepted)
    assert len(peer.held) == 1


BAD = {
    "for another name": {"address": "127.0.0.9", "name": "other.example.test"},
    "that has expired": {"valid_s": -60},
}


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_a_certificate_that_is_not_good_stops_the_provider_before_a_mail_command(
    fault: str, tls: str
) -> None:
    bad = loopback_certificate(**BAD[fault])  # type: ignore[arg-type]
    at_once = tls == "implicit"
    with scripted(tls=bad.server(), tls_at_once=at_once, EHLO=OFFERS_TLS) as peer:
        outcome = sender_to(peer.port, tls=tls, context=bad.client()).connect(3.0)
    assert outcome == about_us(Detail.PROVIDER_ERROR, "tls_certificate")
    assert "MAIL" not in peer.verbs()


@ENDS
@pytest.mark.parametrize("said", [b"", b"\x16", b"\x16\x03\x03\x00\x7a\x02"])
def test_a_handshake_that_is_cut_is_not_accepted(said: bytes, end: Do) -> None:
    certificate = loopback_certificate()
    with scripted(EHLO=OFFERS_TLS, STARTTLS=(b"220 go ahead\r\n", said, end)) as peer:
        outcome = sender_to(peer.port, tls="starttls", context=certificate.client()).connect(3.0)
    assert isinstance(outcome, NotAccepted)
    with scripted(BANNER=(said, end)) as other:
        found = sender_to(other.port, tls="implicit", context=certificate.client()).connect(3.0)
    assert isinstance(found, NotAccepted)
    assert (peer.connections, other.connections) == (1, 1)
    assert "MAIL" not in [*peer.verbs(), *other.verbs()]
