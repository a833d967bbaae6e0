"""What a refusal in words means, by phase and code, over a real conversation."""

from __future__ import annotations

import pytest

from notifier.domain.outcome import NotAccepted, ProviderPause, Refused
from notifier.domain.reasons import Detail
from notifier.ports.sending import Envelope
from tests.providers.scripted_smtp import scripted
from tests.providers.smtp_sending import send, sender_to

ABOUT_THE_RECIPIENT_OR_THE_TEXT = [
    ("RCPT", "550 5.1.1", Detail.INVALID_DESTINATION),
    ("RCPT", "550 5.1.2", Detail.INVALID_DESTINATION),
    ("RCPT", "501 5.1.3", Detail.INVALID_DESTINATION),
    ("RCPT", "556 5.1.10", Detail.INVALID_DESTINATION),
    ("RCPT", "550", Detail.INVALID_DESTINATION),
    ("RCPT", "550 5.5.0", Detail.INVALID_DESTINATION),
    ("RCPT", "550 5.0.0", Detail.INVALID_DESTINATION),
    ("RCPT", "553", Detail.INVALID_DESTINATION),
    ("RCPT", "552", Detail.MAILBOX_FULL),
    ("RCPT", "552 5.2.2", Detail.MAILBOX_FULL),
    ("RCPT", "550 5.2.1", Detail.BLOCKED),
    ("RCPT", "554", Detail.BLOCKED),
    ("RCPT", "554 5.7.1", Detail.BLOCKED),
    ("RCPT", "550 5.7.133", Detail.BLOCKED),
    ("RCPT", "550 5.4.1", Detail.UNREACHABLE),
    ("RCPT", "571", Detail.UNCLASSIFIED),
    ("RCPT", "451 5.1.1", Detail.INVALID_DESTINATION),
    ("RCPT", "450 4.4.7", Detail.EXPIRED_AT_PROVIDER),
    ("DATA", "554 5.5.1", Detail.BLOCKED),
    ("DATA", "554", Detail.BLOCKED),
    ("END", "550 5.6.1", Detail.CONTENT_REJECTED),
    ("END", "552 5.3.4", Detail.CONTENT_REJECTED),
    ("END", "552 5.2.3", Detail.CONTENT_REJECTED),
    ("END", "554 5.7.1", Detail.BLOCKED),
    ("END", "550 5.4.7", Detail.EXPIRED_AT_PROVIDER),
]
ABOUT_US = [
    ("BANNER", "554", Detail.BLOCKED),
    ("EHLO", "550 5.7.1", Detail.PROVIDER_ERROR),
    ("MAIL", "530 5.7.0", Detail.AUTH_ERROR),
    ("MAIL", "550 5.7.1", Detail.SENDER_REJECTED),
    ("MAIL", "553", Detail.SENDER_REJECTED),
    ("MAIL", "555", Detail.PROVIDER_ERROR),
    ("RCPT", "530 5.7.1", Detail.AUTH_ERROR),
    ("RCPT", "550 5.1.8", Detail.SENDER_REJECTED),
    ("RCPT", "554 5.7.25", Detail.SENDER_REJECTED),
    ("END", "550 5.7.26", Detail.SENDER_REJECTED),
    ("END", "535 5.7.8", Detail.AUTH_ERROR),
]
PASSING = [
    ("BANNER", "421", Detail.PROVIDER_ERROR),
    ("BANNER", "421 4.7.0", Detail.RATE_LIMITED),
    ("EHLO", "421 4.3.2", Detail.PROVIDER_ERROR),
    ("MAIL", "421 4.4.2", Detail.UNREACHABLE),
    ("MAIL", "451", Detail.PROVIDER_ERROR),
    ("RCPT", "450", Detail.RATE_LIMITED),
    ("RCPT", "450 4.7.1", Detail.RATE_LIMITED),
    ("RCPT", "550 4.7.1", Detail.RATE_LIMITED),
    ("RCPT", "450 4.2.1", Detail.RATE_LIMITED),
    ("RCPT", "452 4.2.2", Detail.MAILBOX_FULL),
    ("RCPT", "452 4.3.1", Detail.PROVIDER_ERROR),
    ("RCPT", "450 4.1.2", Detail.UNREACHABLE),
    ("RCPT", "421", Detail.PROVIDER_ERROR),
    ("RCPT", "503", Detail.PROVIDER_ERROR),
    ("DATA", "451 4.4.1", Detail.UNREACHABLE),
    ("DATA", "421", Detail.PROVIDER_ERROR),
    ("DATA", "250", Detail.PROVIDER_ERROR),
    ("RCPT", "354", Detail.PROVIDER_ERROR),
    ("END", "452", Detail.PROVIDER_ERROR),
    ("END", "421", Detail.PROVIDER_ERROR),
    ("END", "450 4.7.1", Detail.RATE_LIMITED),
]


@pytest.mark.parametrize(("phase", "code", "detail"), ABOUT_THE_RECIPIENT_OR_THE_TEXT)
def test_a_refusal_of_the_recipient_or_the_text_is_final(
    phase: str, code: str, detail: Detail, envelope: Envelope
) -> None:
    with scripted({phase: f"{code} no\r\n".encode()}) as peer:
        assert send(sender_to(peer.port), envelope) == Refused(detail, code)
    assert peer.held == []


@pytest.mark.parametrize(("phase", "code", "detail"), ABOUT_US)
def test_a_refusal_of_us_pauses_the_provider(
    phase: str, code: str, detail: Detail, envelope: Envelope
) -> None:
    with scripted({phase: f"{code} no\r\n".encode()}) as peer:
        outcome = send(sender_to(peer.port), envelope)
    assert outcome == NotAccepted(detail, code, ProviderPause(detail))
    assert peer.held == []


@pytest.mark.parametrize(("phase", "code", "detail"), PASSING)
def test_a_passing_refusal_may_be_tried_again_and_pauses_nobody(
    phase: str, code: str, detail: Detail, envelope: Envelope
) -> None:
    with scripted({phase: f"{code} later\r\n".encode()}) as peer:
        assert send(sender_to(peer.port), envelope) == NotAccepted(detail, code)
    assert peer.held == []


def test_the_enhanced_code_is_found_on_any_line_of_an_answer(envelope: Envelope) -> None:
    with scripted(RCPT=b"550-sorry\r\n550 5.2.2 full\r\n") as peer:
        outcome = send(sender_to(peer.port), envelope)
    assert outcome == Refused(Detail.MAILBOX_FULL, "550 5.2.2")
