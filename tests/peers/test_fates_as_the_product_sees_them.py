"""Each fate of a stand-in is, to the product's own adapters, the outcome it is meant to be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notifier.domain.destinations import check_destination
from notifier.domain.outcome import OutcomeKind
from notifier.domain.states import Channel
from notifier.domain.values import Destination, RenderedMessage, Secret
from notifier.links.auth_service import AuthService
from notifier.ports.links import LinkGranted, LinkRequest
from notifier.ports.sending import Envelope
from notifier.providers.smtp import SmtpAccount, SmtpConnection, SmtpSender
from notifier.signatures import parse_secret
from peers.testing import AuthHandle, InboxHandle, running_auth_service, running_inbox

SECRET = "whsec_c3RhbmQtaW4tc2VjcmV0LWZvci10ZXN0cw=="
LINK = "https://account.example.test/reset/1"


@pytest.fixture(scope="module")
def inbox() -> Iterator[InboxHandle]:
    with running_inbox() as running:
        yield running


@pytest.fixture(scope="module")
def auth() -> Iterator[AuthHandle]:
    with running_auth_service(SECRET) as running:
        yield running


def an_envelope(recipient: str, reference: str, padding: str) -> Envelope:
    text = Secret(f"Open {LINK}\n{padding}")
    message = RenderedMessage(Channel.EMAIL, "Reset your password", text, None, "digest")
    destination = Destination(Channel.EMAIL, recipient)
    return Envelope(destination, message, reference, "evt-1:email:first", 5.0, 300)


def outcome_of(
    inbox: InboxHandle, recipient: str, reference: str = "ref1", padding: str = ""
) -> OutcomeKind:
    account = SmtpAccount("127.0.0.1", inbox.smtp_port, "plain")
    sender = SmtpSender(account, "no-reply@example.test", 1.0, 0.3)
    line = sender.connect(5.0)
    assert isinstance(line, SmtpConnection)
    try:
        return line.send(an_envelope(recipient, reference, padding)).kind
    finally:
        line.close()


@pytest.mark.parametrize(
    ("fate", "outcome", "kept"),
    [
        ("person", "accepted", 1),
        ("refuse-rcpt", "refused", 0),
        ("blocked", "refused", 0),
        ("disabled", "refused", 0),
        ("quota-exceeded", "refused", 0),
        ("refuse-content", "refused", 0),
        ("mailbox-full", "not_accepted", 0),
        ("rate-limited", "not_accepted", 0),
        ("busy-after-dot", "not_accepted", 0),
        ("greylist", "not_accepted", 0),
        ("sender-rejected", "not_accepted", 0),
        ("drop-at-rcpt", "not_accepted", 0),
        ("hang-at-rcpt", "not_accepted", 0),
        ("drop-at-data", "not_accepted", 0),
        ("hang-after-dot", "unknown", 1),
        ("drop-after-dot", "unknown", 1),
        ("reset-after-dot", "unknown", 1),
        ("garbage-after-dot", "unknown", 1),
        ("lost-after-dot", "unknown", 0),
        ("slow", "unknown", 1),
    ],
)
def test_a_mail_fate_is_the_outcome_it_stands_for(
    inbox: InboxHandle, fate: str, outcome: str, kept: int
) -> None:
    recipient = f"{fate}+1@example.test"
    assert outcome_of(inbox, recipient) == outcome
    assert len(inbox.journal(phase="stored", recipient=recipient)) == kept


def test_a_line_cut_while_the_text_is_still_being_written_is_not_accepted(
    inbox: InboxHandle,
) -> None:
    more_than_the_sockets_hold = "A line of text.\n" * 1_000_000
    outcome = outcome_of(inbox, "drop-in-body@example.test", padding=more_than_the_sockets_hold)
    assert outcome == "not_accepted"
    assert inbox.journal(phase="stored", recipient="drop-in-body@example.test") == []


def test_the_journal_knows_the_attempt_by_the_product_s_reference(inbox: InboxHandle) -> None:
    outcome_of(inbox, "ada@example.test", "9fk3q2")
    [entry] = inbox.journal(phase="stored", recipient="ada@example.test")
    assert entry["reference"] == "9fk3q2"


@pytest.mark.parametrize(
    ("fate", "answer"),
    [
        ("slow", "LinkGranted"),
        ("no-destination", "LinkWithheld"),
        ("not-permitted", "LinkWithheld"),
        ("bare-404", "LinkUnavailable"),
        ("used", "LinkGone"),
        ("expired", "LinkGone"),
        ("error", "LinkUnavailable"),
        ("unavailable", "LinkUnavailable"),
        ("redirect", "LinkUnavailable"),
        ("malformed", "LinkUnavailable"),
        ("empty", "LinkUnavailable"),
        ("truncate", "LinkUnavailable"),
        ("drop", "LinkUnavailable"),
        ("too-slow", "LinkUnavailable"),
    ],
)
def test_a_link_fate_is_the_answer_it_stands_for(auth: AuthHandle, fate: str, answer: str) -> None:
    source = AuthService(auth.link_url, parse_secret(SECRET), check_destination)
    try:
        got = source.ask(LinkRequest(f"link:{fate}:rr-1", "evt-1", Channel.EMAIL), 2.0)
        assert type(got).__name__ == answer
    finally:
        source.close()


def test_a_link_is_granted_for_either_channel(auth: AuthHandle) -> None:
    source = AuthService(auth.link_url, parse_secret(SECRET), check_destination)
    try:
        for channel in Channel:
            got = source.ask(LinkRequest("rr-1", "evt-1", channel), 2.0)
            assert isinstance(got, LinkGranted)
            assert got.link is not None
            assert got.name is not None
    finally:
        source.close()
