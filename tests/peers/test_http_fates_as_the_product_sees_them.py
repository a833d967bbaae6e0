"""Each fate at a stand-in is, to the product's own adapters, what it is meant to be."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, OutcomeKind
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Destination, RenderedMessage, Secret
from notifier.ports.asking import Callback, Found, Looked, NotFound, Question
from notifier.ports.sending import Envelope, Sender
from notifier.providers.postmark import PostmarkAsking, PostmarkSender
from notifier.providers.resend import ResendAsking, ResendSender
from notifier.providers.twilio import TwilioAccount, TwilioAsking, TwilioSender
from peers.testing import (
    PostmarkHandle,
    ResendHandle,
    TwilioHandle,
    running_postmark,
    running_resend,
    running_twilio,
)
from peers.twilio_words import number_for
from tests.peers.wire import CallbackAddress, a_callback_address

RESEND_KEY = b"the webhook key of a test"
PASSWORD = Secret("callback-password")
SENDER = "+447700900000"
CALL_S = 0.4


@pytest.fixture
def app() -> Iterator[CallbackAddress]:
    with a_callback_address() as address:
        yield address


@pytest.fixture(scope="module")
def postmark() -> Iterator[PostmarkHandle]:
    with running_postmark() as running:
        yield running


@pytest.fixture(scope="module")
def twilio() -> Iterator[TwilioHandle]:
    with running_twilio() as running:
        yield running


@pytest.fixture(scope="module")
def resend() -> Iterator[ResendHandle]:
    with running_resend() as running:
        yield running


@pytest.fixture
def telling() -> Iterator[ResendHandle]:
    """One of the test's own: what it tells is about that test's messages alone."""
    with running_resend() as running:
        yield running


def by_resend(handle: ResendHandle) -> tuple[ResendSender, ResendAsking]:
    key = Secret(handle.api_key)
    asking = ResendAsking(key, [RESEND_KEY], handle.base_url, now=lambda: datetime.now(UTC))
    return ResendSender(key, "no-reply@example.test", handle.base_url), asking


def by_postmark(handle: PostmarkHandle) -> tuple[PostmarkSender, PostmarkAsking]:
    token = Secret(handle.token)
    sender = PostmarkSender(token, "no-reply@example.test", handle.base_url)
    return sender, PostmarkAsking(token, PASSWORD, handle.base_url)


def by_twilio(handle: TwilioHandle, app: CallbackAddress) -> tuple[TwilioSender, TwilioAsking]:
    account = TwilioAccount(handle.account_sid, Secret(handle.auth_token))
    sender = TwilioSender(account, SENDER, handle.base_url, app.url)
    return sender, TwilioAsking(account, SENDER, handle.base_url)


def send(sender: Sender, to: str, reference: str, validity_s: int = 300) -> OutcomeKind:
    """One call; its key is the reference's own, so that a second one is its replay."""
    channel = sender.channel
    message = RenderedMessage(channel, "Reset", Secret("Open the link."), None, "digest")
    key = f"{reference}:{channel}:first"
    envelope = Envelope(Destination(channel, to), message, reference, key, CALL_S, validity_s)
    line = sender.connect(5.0)
    assert not isinstance(line, NotAccepted)
    try:
        return line.send(envelope).kind
    finally:
        line.close()


def a_question(channel: Channel, reference: str, to: str) -> Question:
    now = datetime.now(UTC)
    destination = Destination(channel, to)
    return Question(
        channel, reference, now - timedelta(seconds=5), now + timedelta(seconds=60), destination
    )


def statuses(looked: Looked) -> list[str]:
    assert isinstance(looked, Found)
    return [str(receipt.status) for receipt in looked.receipts]


@pytest.mark.parametrize(
    ("fate", "outcome", "kept"),
    [
        ("person", "accepted", 1),
        ("callback-first", "accepted", 1),
        ("bounce-hard", "accepted", 1),
        ("lost", "accepted", 1),
        ("inactive", "refused", 0),
        ("bad-address", "refused", 0),
        ("sender-rejected", "not_accepted", 0),
        ("suspended", "not_accepted", 0),
        ("denied", "not_accepted", 0),
        ("rate-limited", "not_accepted", 0),
        ("unavailable", "unknown", 0),
        ("proxy-page", "unknown", 0),
        ("lost-after-accept", "unknown", 0),
        ("hang-after-accept", "unknown", 1),
        ("drop-after-accept", "unknown", 1),
        ("reset-after-accept", "unknown", 1),
        ("error-after-accept", "unknown", 1),
        ("truncate", "unknown", 1),
        ("junk", "unknown", 1),
        ("slow", "unknown", 1),
    ],
)
def test_an_address_s_fate_is_the_outcome_it_stands_for(
    postmark: PostmarkHandle, fate: str, outcome: str, kept: int
) -> None:
    sender, asking = by_postmark(postmark)
    try:
        assert send(sender, f"{fate}+o@example.test", f"o-{fate}") == outcome
        found = asking.find(a_question(Channel.EMAIL, f"o-{fate}", "x@example.test"), 5.0)
        assert isinstance(found, Found if kept else NotFound)
        assert len(postmark.stored(reference=f"o-{fate}")) == kept
    finally:
        asking.close()


@pytest.mark.parametrize(
    ("fate", "outcome", "kept", "again"),
    [
        ("person", "accepted", 1, "accepted"),
        ("bounce-hard", "accepted", 1, "accepted"),
        ("bad-address", "refused", 0, "refused"),
        ("blocked", "refused", 0, "refused"),
        ("sender-rejected", "not_accepted", 0, "not_accepted"),
        ("suspended", "not_accepted", 0, "not_accepted"),
        ("denied", "not_accepted", 0, "not_accepted"),
        ("greylist", "not_accepted", 0, "accepted"),
        ("unavailable", "unknown", 0, "unknown"),
        ("lost-after-accept", "unknown", 0, "unknown"),
        ("hang-after-accept", "unknown", 1, "accepted"),
        ("drop-after-accept", "unknown", 1, "accepted"),
        ("reset-after-accept", "unknown", 1, "accepted"),
        ("error-after-accept", "unknown", 1, "accepted"),
        ("truncate", "unknown", 1, "accepted"),
        ("junk", "unknown", 1, "accepted"),
    ],
)
def test_a_second_call_under_resends_key_tells_what_the_first_came_to(
    resend: ResendHandle, fate: str, outcome: str, kept: int, again: str
) -> None:
    sender, asking = by_resend(resend)
    address, reference = f"{fate}+o@example.test", f"o-{fate}"
    try:
        assert send(sender, address, reference) == outcome
        assert len(resend.stored(reference=reference)) == kept
        assert send(sender, address, reference) == again
        assert len(resend.stored(reference=reference)) == (again == "accepted")
    finally:
        asking.close()


@pytest.mark.parametrize(
    ("fate", "last_word", "told"),
    [
        ("person", "delivered", "delivered"),
        ("bounce-hard", "bounced", "failed"),
        ("complaint", "complained", "delivered"),
        ("inactive", "suppressed", "failed"),
        ("failed", "failed", "failed"),
        ("unmapped", "brewing", "unmapped"),
    ],
)
def test_what_resend_calls_back_and_what_it_is_asked_for_agree(
    telling: ResendHandle, app: CallbackAddress, fate: str, last_word: str, told: str
) -> None:
    sender, asking = by_resend(telling)
    secret = "whsec_" + base64.b64encode(RESEND_KEY).decode()
    telling.callback_to(f"{app.url}/callbacks/resend/", secret)
    try:
        assert send(sender, f"{fate}+hook@example.test", f"hook-{fate}") == "accepted"
        [entry] = telling.wait_for(phase="callback", word=last_word, reference=f"hook-{fate}")
        came = [app.next() for _ in telling.journal(phase="callback", reference=f"hook-{fate}")]
        receipts = [
            receipt
            for each in came
            for receipt in asking.parse(Callback(app.url, each.headers, each.body))
        ]
        said = {str(receipt.status) for receipt in receipts}
        assert told in said
        assert {receipt.reference for receipt in receipts} == {f"hook-{fate}"}
        assert {receipt.provider_message_id for receipt in receipts} == {entry["message_id"]}
        assert set(statuses(asking.poll(str(entry["message_id"]), 5.0))) <= said | {"delivered"}
    finally:
        asking.close()


@pytest.mark.parametrize(
    ("fate", "outcome", "kept"),
    [
        ("deliver", "accepted", 1),
        ("bad-address", "refused", 0),
        ("unsubscribed", "refused", 0),
        ("sender-rejected", "not_accepted", 0),
        ("region", "refused", 0),
        ("denied", "not_accepted", 0),
        ("rate-limited", "not_accepted", 0),
        ("unavailable", "unknown", 0),
        ("lost-after-accept", "unknown", 0),
        ("hang-after-accept", "unknown", 1),
        ("reset-after-accept", "unknown", 1),
        ("error-after-accept", "unknown", 1),
        ("truncate", "unknown", 1),
        ("junk", "unknown", 1),
        ("slow", "unknown", 1),
    ],
)
def test_a_number_s_fate_is_the_outcome_it_stands_for(
    twilio: TwilioHandle, app: CallbackAddress, fate: str, outcome: str, kept: int
) -> None:
    sender, asking = by_twilio(twilio, app)
    number = number_for(fate, 77)
    try:
        assert send(sender, number, f"o-{fate}") == outcome
        found = asking.find(a_question(Channel.SMS, f"o-{fate}", number), 5.0)
        assert isinstance(found, Found if kept else NotFound)
        assert len(twilio.stored(reference=f"o-{fate}")) == kept
    finally:
        asking.close()


@pytest.mark.parametrize(
    ("fate", "last_word", "told"),
    [
        ("deliver", "Delivered", "delivered"),
        ("bounce-hard", "HardBounce", "failed"),
        ("mailbox-full", "SoftBounce", "delayed"),
        ("blocked", "Blocked", "failed"),
        ("complaint", "SpamComplaint", "information"),
        ("unmapped", "NotYetInvented", "unmapped"),
    ],
)
def test_a_webhook_and_a_poll_are_the_receipts_that_the_fate_stands_for(
    postmark: PostmarkHandle, app: CallbackAddress, fate: str, last_word: str, told: str
) -> None:
    sender, asking = by_postmark(postmark)
    postmark.callback_to(f"{app.url}/callbacks/postmark/", PASSWORD.reveal())
    reference = f"r-{fate}"
    try:
        send(sender, f"{fate}+r@example.test", reference)
        postmark.wait_for(phase="callback", word=last_word, reference=reference)
        came = [app.next() for _ in postmark.journal(phase="callback", reference=reference)]
        receipts = [
            receipt
            for request in came
            for receipt in asking.parse(Callback(app.url, request.headers, request.body))
        ]
        assert {receipt.reference for receipt in receipts} == {reference}
        assert told in [str(receipt.status) for receipt in receipts]
        [entry] = postmark.stored(reference=reference)
        assert told in statuses(asking.poll(str(entry["message_id"]), 5.0))
    finally:
        asking.close()


@pytest.mark.parametrize(
    ("fate", "word", "told", "code"),
    [
        ("deliver", "delivered", "delivered", None),
        ("unreachable", "undelivered", "failed", "30003"),
        ("filtered", "failed", "failed", "30007"),
        ("expired", "failed", "failed", "30036"),
    ],
)
def test_a_status_callback_and_a_poll_agree(
    twilio: TwilioHandle, app: CallbackAddress, fate: str, word: str, told: str, code: str | None
) -> None:
    sender, asking = by_twilio(twilio, app)
    reference = f"r-{fate}"
    try:
        send(sender, number_for(fate, 133), reference, validity_s=1)
        twilio.wait_for(phase="callback", word=word, reference=reference)
        while (came := app.next()).form().get(
            "MessageStatus"
        ) != word or reference not in came.path:
            pass
        [receipt] = asking.parse(Callback(f"{app.url}{came.path}", came.headers, came.body))
        assert (receipt.reference, str(receipt.status)) == (reference, told)
        assert code is None or receipt.provider_code == code
        assert statuses(asking.poll(receipt.provider_message_id or "", 5.0)) == [told]
    finally:
        asking.close()


def test_a_text_whose_answer_was_lost_is_found_by_number_and_its_callback_names_it(
    twilio: TwilioHandle, app: CallbackAddress
) -> None:
    sender, asking = by_twilio(twilio, app)
    number = number_for("hang-and-silent", 177)
    try:
        assert send(sender, number, "lost-1") is OutcomeKind.UNKNOWN
        found = asking.find(a_question(Channel.SMS, "lost-1", number), 5.0)
        assert isinstance(found, Found)
        assert found.receipts[0].status in {ReceiptStatus.ACCEPTED, ReceiptStatus.DELIVERED}
    finally:
        asking.close()


def test_both_probes_are_well_with_the_right_secrets(
    postmark: PostmarkHandle, twilio: TwilioHandle, app: CallbackAddress
) -> None:
    for _, asking in (by_postmark(postmark), by_twilio(twilio, app)):
        try:
            assert asking.probe().ok
        finally:
            asking.close()


def test_the_provider_s_id_is_the_one_in_the_journal(postmark: PostmarkHandle) -> None:
    sender, asking = by_postmark(postmark)
    asking.close()
    line = sender.connect(5.0)
    assert not isinstance(line, NotAccepted)
    destination = Destination(Channel.EMAIL, "ada@example.test")
    message = RenderedMessage(Channel.EMAIL, "Reset", Secret("Open."), None, "digest")
    outcome = line.send(Envelope(destination, message, "id-1", "k", 5.0, 300))
    line.close()
    assert isinstance(outcome, Accepted)
    assert outcome.provider_message_id == postmark.stored(reference="id-1")[0]["message_id"]
