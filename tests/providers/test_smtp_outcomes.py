"""What one send comes to, whatever the server does, and how many messages it then holds."""

from __future__ import annotations

import time
from typing import Literal

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.ports.sending import Envelope, Sender
from notifier.providers.smtp import SmtpSender
from tests.providers.conftest import make_envelope
from tests.providers.scripted_smtp import Do, Step, scripted
from tests.providers.smtp_sending import QUICK, opened, send, sender_to

BEFORE_END = ("BANNER", "EHLO", "MAIL", "RCPT", "DATA")


def test_a_message_that_the_server_takes_is_accepted_under_our_own_message_id(
    envelope: Envelope,
) -> None:
    with scripted() as peer:
        outcome = send(sender_to(peer.port), envelope)
    assert outcome == Accepted("<ref7Kx2.notice@reset.example>", "250 2.0.0")
    assert peer.verbs() == ["EHLO", "MAIL", "RCPT", "DATA", "QUIT"]
    assert (peer.connections, len(peer.held)) == (1, 1)


def test_the_sender_fills_its_port_and_says_that_it_never_learns_of_a_delivery() -> None:
    sender: Sender = sender_to(1)
    assert isinstance(sender, SmtpSender)
    assert (sender.name, sender.channel, sender.reports_deliveries) == ("smtp", "email", False)


def test_a_refused_connection_is_not_accepted(envelope: Envelope) -> None:
    with scripted() as peer:
        port = peer.port
    assert send(sender_to(port), envelope) == NotAccepted(Detail.UNREACHABLE)


@pytest.mark.parametrize("phase", BEFORE_END)
@pytest.mark.parametrize(
    ("step", "detail"),
    [
        (Do.HANG, Detail.TIMEOUT),
        (Do.DRIP, Detail.TIMEOUT),
        (Do.CLOSE, Detail.UNREACHABLE),
        (Do.RESET, Detail.UNREACHABLE),
        (b"HTTP/1.1 400 Bad Request\r\n", Detail.PROVIDER_ERROR),
        (b"\xff\xfe\x00\r\n", Detail.PROVIDER_ERROR),
        (b"2" * 9000 + b"\r\n", Detail.PROVIDER_ERROR),
        (b"250-one\r\n" * 200, Detail.PROVIDER_ERROR),
        (b"250-one\r\n550 two\r\n", Detail.PROVIDER_ERROR),
    ],
)
def test_p3_whatever_breaks_before_the_final_dot_is_not_accepted(
    phase: str, step: Step, detail: Detail, envelope: Envelope
) -> None:
    with scripted({phase: step}) as peer:
        outcome = send(sender_to(peer.port, call_timeout_s=QUICK), envelope)
        assert peer.gone.wait(5)
    assert outcome == NotAccepted(detail)
    assert (peer.connections, peer.held) == (1, [])
    assert "QUIT" not in peer.verbs()


@pytest.mark.parametrize("step", [Do.STALL, Do.CLOSE, Do.RESET])
def test_p3_a_line_that_breaks_in_the_middle_of_a_large_text_is_not_accepted(step: Do) -> None:
    large = make_envelope(text=("0" * 70 + "\n") * 90_000, html=None)
    with scripted(TEXT=step) as peer:
        outcome = send(sender_to(peer.port, call_timeout_s=QUICK), large)
    assert peer.gone.wait(5)
    assert isinstance(outcome, NotAccepted)
    assert peer.held == []


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Do.HANG, Reason.TIMEOUT),
        (Do.DRIP, Reason.TIMEOUT),
        ((b"250-2.0.0 half\r\n", b"250"), Reason.TIMEOUT),
        (Do.CLOSE, Reason.CONNECTION_LOST),
        (Do.RESET, Reason.CONNECTION_LOST),
        (b"OK queued\r\n", Reason.UNREADABLE_ANSWER),
        (b"\r\n", Reason.UNREADABLE_ANSWER),
        (b"250-yes\r\n451 no\r\n", Reason.UNREADABLE_ANSWER),
        (b"2" * 9000, Reason.UNREADABLE_ANSWER),
    ],
)
def test_p3_no_readable_answer_after_the_final_dot_is_unknown_and_sent_once(
    step: Step, reason: Reason, envelope: Envelope
) -> None:
    with scripted(END=step) as peer:
        outcome = send(sender_to(peer.port, final_reply_timeout_s=QUICK), envelope)
        assert peer.gone.wait(5)
    assert isinstance(outcome, Unknown)
    assert outcome.reason is reason
    assert (peer.connections, len(peer.held)) == (1, 1)
    assert peer.verbs().count("DATA") == 1


@pytest.mark.parametrize("answer", [b"354 go on\r\n", b"220 ready\r\n", b"221 bye\r\n"])
def test_p3_an_answer_that_fits_no_message_is_unknown(answer: bytes, envelope: Envelope) -> None:
    with scripted(END=answer) as peer:
        outcome = send(sender_to(peer.port), envelope)
    assert outcome == Unknown(Reason.UNREADABLE_ANSWER, answer[:3].decode())


@pytest.mark.parametrize(
    "answer",
    [
        (b"2", b"50", b" 2.0.0 o", b"k\r", b"\n"),
        (b"250-2.0.0 first\r\n", b"250 2.0.0 second\r\n"),
        b"250 2.0.0 bare line feed\n",
    ],
)
def test_an_answer_in_pieces_is_put_together(answer: Step, envelope: Envelope) -> None:
    with scripted(END=answer) as peer:
        outcome = send(sender_to(peer.port), envelope)
    assert outcome == Accepted("<ref7Kx2.notice@reset.example>", "250 2.0.0")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"451 4.3.0 later\r\n", NotAccepted(Detail.PROVIDER_ERROR, "451 4.3.0")),
        (b"421 4.3.2 closing\r\n", NotAccepted(Detail.PROVIDER_ERROR, "421 4.3.2")),
        (b"554 5.6.0 bad text\r\n", Refused(Detail.CONTENT_REJECTED, "554 5.6.0")),
        (b"554 no\r\n", Refused(Detail.BLOCKED, "554")),
        (b"503 what\r\n", Refused(Detail.UNCLASSIFIED, "503")),
    ],
)
def test_a_refusal_after_the_final_dot_is_the_servers_own_word(
    answer: bytes, outcome: Outcome, envelope: Envelope
) -> None:
    with scripted(END=answer) as peer:
        assert send(sender_to(peer.port), envelope) == outcome
    assert peer.held == []


@pytest.mark.parametrize("quit_step", [Do.CLOSE, Do.RESET, b"500 what\r\n", b"garbage\r\n"])
def test_a_failing_quit_changes_nothing(quit_step: Step, envelope: Envelope) -> None:
    with scripted(QUIT=quit_step) as peer:
        outcome = send(sender_to(peer.port), envelope)
    assert isinstance(outcome, Accepted)
    assert len(peer.held) == 1


def test_a_quit_that_is_never_answered_is_not_waited_for_long(envelope: Envelope) -> None:
    with scripted(QUIT=Do.HANG) as peer:
        started = time.monotonic()
        outcome = send(sender_to(peer.port, call_timeout_s=30, final_reply_timeout_s=30), envelope)
        assert time.monotonic() - started < 10
    assert isinstance(outcome, Accepted)


def test_a_server_that_refuses_before_the_text_has_ended_never_gets_the_final_dot(
    envelope: Envelope,
) -> None:
    # The refusal follows 354 in the same packet, so it is there before the text is.
    with scripted(DATA=b"354 go on\r\n552 5.3.4 too big\r\n") as peer:
        outcome = send(sender_to(peer.port), envelope)
    assert outcome == Refused(Detail.CONTENT_REJECTED, "552 5.3.4")
    assert peer.held == []


def test_a_yes_before_the_text_has_ended_is_no_yes(envelope: Envelope) -> None:
    with scripted(DATA=b"354 go on\r\n250 2.0.0 queued\r\n") as peer:
        outcome = send(sender_to(peer.port), envelope)
    assert outcome == NotAccepted(Detail.PROVIDER_ERROR, "250 2.0.0")


def test_a_line_carries_one_message_only(envelope: Envelope) -> None:
    with scripted() as peer:
        line = opened(sender_to(peer.port))
        first, second = line.send(envelope), line.send(envelope)
        line.close()
    assert isinstance(first, Accepted)
    assert second == NotAccepted(Detail.PROVIDER_ERROR, "line_used")
    assert len(peer.held) == 1


def test_a_line_that_the_server_dropped_while_idle_is_not_opened_again(
    envelope: Envelope,
) -> None:
    with scripted(EHLO=(b"250 peer\r\n", b"421 4.4.2 idle\r\n")) as peer:
        line = opened(sender_to(peer.port))
        outcome = line.send(envelope)
        line.close()
    assert outcome == NotAccepted(Detail.UNREACHABLE, "421 4.4.2")
    assert peer.connections == 1


def test_closing_an_unused_line_says_goodbye() -> None:
    with scripted() as peer:
        opened(sender_to(peer.port)).close()
        assert peer.gone.wait(5)
    assert peer.verbs() == ["EHLO", "QUIT"]


@pytest.mark.parametrize("phase", ["MAIL", "END"])
def test_p5_the_budget_bounds_the_whole_call_against_a_slow_drip(
    phase: Literal["MAIL", "END"],
) -> None:
    with scripted({phase: Do.DRIP}) as peer:
        line = opened(sender_to(peer.port, call_timeout_s=30, final_reply_timeout_s=30))
        started = time.monotonic()
        outcome = line.send(make_envelope(budget_s=0.3))
        took = time.monotonic() - started
        line.close()
    assert 0.25 < took < 10
    expected = {"MAIL": NotAccepted(Detail.TIMEOUT), "END": Unknown(Reason.TIMEOUT)}
    assert outcome == expected[phase]


def test_p5_connecting_ends_with_its_budget_and_not_with_each_phase() -> None:
    with scripted(EHLO=Do.DRIP) as peer:
        started = time.monotonic()
        outcome = sender_to(peer.port, call_timeout_s=30).connect(0.3)
        took = time.monotonic() - started
    assert outcome == NotAccepted(Detail.TIMEOUT)
    assert 0.25 < took < 10


def test_p5_no_time_left_means_not_a_byte_is_said() -> None:
    with scripted() as peer:
        line = opened(sender_to(peer.port))
        outcome = line.send(make_envelope(budget_s=0.0))
        line.close()
        assert peer.gone.wait(5)
    assert outcome == NotAccepted(Detail.TIMEOUT)
    assert peer.verbs() == ["EHLO"]
