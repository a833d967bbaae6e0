"""What Postmark's callbacks prove, and who is let in to tell."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.values import Secret
from notifier.ports.asking import (
    Callback,
    CallbackRefused,
    CallbackUnreadable,
    ProviderReceipt,
    ReceiptParser,
)
from notifier.providers.postmark import PostmarkAsking
from tests.providers import http_sending as ways
from tests.providers.http_sending import asking_postmark

URL = f"{ways.PUBLIC_URL}/callbacks/postmark/"
AT = datetime(2033, 5, 1, 12, 0, 3, 273539, UTC)
AT_TEXT = "2033-05-01T08:00:03.2735393-04:00"
METADATA = {"notice_ref": ways.REFERENCE}
S = ReceiptStatus


def authorization(user: str = "hook", password: str = ways.CALLBACK_PASSWORD) -> dict[str, str]:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}", "Content-Type": "application/json"}


def parse(record: object, headers: dict[str, str] | None = None) -> list[ProviderReceipt]:
    body = record if isinstance(record, bytes) else json.dumps(record).encode()
    given = authorization() if headers is None else headers
    parser: ReceiptParser = asking_postmark()
    return list(parser.parse(Callback(URL, given, body)))


def record(kind: str = "Delivery", **members: object) -> dict[str, object]:
    times = {"DeliveredAt": AT_TEXT} if kind == "Delivery" else {}
    return {
        "RecordType": kind,
        "MessageID": ways.MESSAGE_ID,
        "Recipient": ways.ADDRESS,
        "Email": ways.ADDRESS,
        "Subject": ways.SUBJECT,
        "Metadata": METADATA,
        **times,
        **members,
    }


def bounce(kind: str, **members: object) -> dict[str, object]:
    return record("Bounce", Type=kind, ID=692560173, BouncedAt=AT_TEXT, **members)


def test_a_delivery_is_told_with_our_reference_its_id_and_its_time() -> None:
    (receipt,) = parse(record())
    assert receipt == ProviderReceipt(
        provider="postmark",
        account="outbound",
        identity=receipt.identity,
        status=S.DELIVERED,
        provider_code="Delivery",
        reference=ways.REFERENCE,
        provider_message_id=ways.MESSAGE_ID,
        occurred_at=AT,
    )
    assert len(receipt.identity) == 32


@pytest.mark.parametrize(
    ("kind", "status", "detail"),
    [
        ("HardBounce", S.FAILED, Detail.INVALID_DESTINATION),
        ("BadEmailAddress", S.FAILED, Detail.INVALID_DESTINATION),
        ("AddressChange", S.FAILED, Detail.INVALID_DESTINATION),
        ("Blocked", S.FAILED, Detail.BLOCKED),
        ("SpamNotification", S.FAILED, Detail.CONTENT_REJECTED),
        ("VirusNotification", S.FAILED, Detail.CONTENT_REJECTED),
        ("ManuallyDeactivated", S.FAILED, Detail.UNSUBSCRIBED),
        ("DMARCPolicy", S.FAILED, Detail.SENDER_REJECTED),
        ("SMTPApiError", S.FAILED, Detail.PROVIDER_ERROR),
        ("TemplateRenderingFailed", S.FAILED, Detail.PROVIDER_ERROR),
        ("SoftBounce", S.DELAYED, Detail.UNREACHABLE),
        ("Transient", S.DELAYED, Detail.UNREACHABLE),
        ("DnsError", S.DELAYED, Detail.UNREACHABLE),
        ("SpamComplaint", S.INFORMATION, Detail.UNSUBSCRIBED),
        ("Unsubscribe", S.INFORMATION, Detail.UNSUBSCRIBED),
        ("AutoResponder", S.INFORMATION, None),
        ("Unknown", S.UNMAPPED, Detail.UNCLASSIFIED),
        ("NewlyInvented", S.UNMAPPED, Detail.UNCLASSIFIED),
    ],
)
def test_each_type_of_bounce_has_one_meaning(
    kind: str, status: ReceiptStatus, detail: Detail | None
) -> None:
    (receipt,) = parse(bounce(kind))
    assert (receipt.status, receipt.detail, receipt.provider_code) == (status, detail, kind)
    assert (receipt.occurred_at, receipt.reference) == (AT, ways.REFERENCE)


@pytest.mark.parametrize("said", ["smtp;452 4.2.2 over", "User is over quota", "Mailbox is full"])
def test_a_full_mailbox_is_known_by_the_text_of_a_soft_bounce(said: str) -> None:
    (receipt,) = parse(bounce("SoftBounce", Details=said))
    assert (receipt.status, receipt.detail) == (S.DELAYED, Detail.MAILBOX_FULL)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("Delivery", S.DELIVERED),
        ("SpamComplaint", S.INFORMATION),
        ("SubscriptionChange", S.INFORMATION),
        ("Open", S.INFORMATION),
        ("Click", S.INFORMATION),
        ("Send", S.UNMAPPED),
        ("SubscriptionConfirmation", S.UNMAPPED),
        ("", S.UNMAPPED),
    ],
)
def test_only_the_record_type_decides_however_much_a_record_looks_like_a_bounce(
    kind: str, status: ReceiptStatus
) -> None:
    (receipt,) = parse({**bounce("HardBounce"), "RecordType": kind, "Kind": "Bounce"})
    assert receipt.status is status


def test_a_repeat_has_the_same_identity_and_another_thing_another() -> None:
    things = [
        record(),
        record(MessageID="a" * 36),
        record(DeliveredAt="2033-05-01T08:00:04-04:00"),
        record("Open", ReceivedAt=AT_TEXT),
        bounce("HardBounce"),
        {**bounce("HardBounce"), "ID": 2},
        bounce("SoftBounce"),
    ]
    first = [parse(each)[0].identity for each in things]
    assert [parse(each)[0].identity for each in things] == first
    assert len(set(first)) == len(things)
    assert parse(record(DeliveredAt="2033-05-01T12:00:03.273539Z"))[0].identity == first[0]


@pytest.mark.parametrize("user", ["", "hook", "x:y"[:1]])
def test_any_user_with_our_password_is_let_in(user: str) -> None:
    assert len(parse(record(), authorization(user))) == 1
    assert len(parse(record(), {k.lower(): v for k, v in authorization(user).items()})) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Basic"},
        {"Authorization": "Basic !!"},
        {"Authorization": "Basic " + base64.b64encode(b"hook").decode()},
        {"Authorization": "Basic " + base64.b64encode(ways.CALLBACK_PASSWORD.encode()).decode()},
        {"Authorization": authorization()["Authorization"].replace("Basic", "Bearer")},
        authorization(password="wrong"),
        authorization(password=""),
        authorization(password=ways.CALLBACK_PASSWORD + " "),
        authorization(password=ways.CALLBACK_PASSWORD[:-1]),
        authorization(password="pässword"),
    ],
)
def test_whoever_has_not_our_password_is_refused_before_the_body_is_read(
    headers: dict[str, str],
) -> None:
    with pytest.raises(CallbackRefused):
        parse(b"{", headers)


@pytest.mark.parametrize("password", ["", "   "])
def test_without_a_password_nobody_is_let_in(password: str) -> None:
    with pytest.raises(ValueError, match="need a password"):
        PostmarkAsking(Secret("t"), Secret(password), "https://api.example.test")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        {"RecordType": "Delivery"},
        {"RecordType": "Delivery", "MessageID": 7},
        {"RecordType": "Delivery", "MessageID": "a\x00b"},
        {"RecordType": "Inbound", "MessageID": "no id at all"},
    ],
)
def test_a_genuine_callback_that_names_no_message_is_unreadable(body: object) -> None:
    with pytest.raises(CallbackUnreadable):
        parse(body)


def test_odd_members_are_dropped_and_never_kept() -> None:
    odd = record(
        DeliveredAt="2033-05-01T08:00:03",
        Metadata={"notice_ref": f"x {ways.ADDRESS}"},
        RecordType=f"Deliver {ways.ADDRESS}",
    )
    (receipt,) = parse(odd)
    assert (receipt.status, receipt.provider_code) == (S.UNMAPPED, None)
    assert (receipt.reference, receipt.occurred_at) == (None, None)
