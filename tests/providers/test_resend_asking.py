"""What Resend says when it is asked or calls back, and what is made of it."""

from __future__ import annotations

import base64
import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from svix.webhooks import Webhook

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Secret
from notifier.ports.asking import (
    Callback,
    CallbackRefused,
    CallbackUnreadable,
    CannotTell,
    Capability,
    Found,
    Looked,
    NotFound,
    OutcomeLookup,
    ProviderReceipt,
    Question,
)
from notifier.providers.resend import ResendAsking
from notifier.signatures import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from tests.providers import http_sending as ways
from tests.providers.http_sending import asking_resend
from tests.providers.scripted_api import api, reply

NOW = datetime(2033, 5, 1, 12, 0, tzinfo=UTC)
AT_TEXT, AT = "2033-05-01T11:59:58.123Z", datetime(2033, 5, 1, 11, 59, 58, 123000, tzinfo=UTC)
SECRET = "whsec_" + base64.b64encode(ways.WEBHOOK_KEY).decode()
S, D = ReceiptStatus, Detail
MEANINGS: list[tuple[str, ReceiptStatus, Detail | None]] = [
    ("queued", S.ACCEPTED, None),
    ("scheduled", S.ACCEPTED, None),
    ("sent", S.ACCEPTED, None),
    ("delivery_delayed", S.DELAYED, D.UNREACHABLE),
    ("delivered", S.DELIVERED, None),
    ("opened", S.DELIVERED, None),
    ("clicked", S.DELIVERED, None),
    ("complained", S.DELIVERED, D.UNSUBSCRIBED),
    ("bounced", S.FAILED, D.UNCLASSIFIED),
    ("failed", S.FAILED, D.PROVIDER_ERROR),
    ("suppressed", S.FAILED, D.BLOCKED),
    ("canceled", S.FAILED, D.CANCELLED),
    ("brewing", S.UNMAPPED, D.UNCLASSIFIED),
]


# --- polling


def message(last_event: object, **members: object) -> dict[str, object]:
    return {
        "object": "email",
        "id": ways.MESSAGE_ID,
        "to": [ways.ADDRESS],
        "created_at": "2033-05-01 11:59:58.123+00",
        "last_event": last_event,
        **members,
    }


def polled(answer: bytes, message_id: str = ways.MESSAGE_ID) -> Looked:
    with api(answer) as peer, closing(asking_resend(peer.url)) as asking:
        looked = asking.poll(message_id, 5.0)
    assert all(line == f"GET /emails/{ways.MESSAGE_ID} HTTP/1.1" for line in peer.lines)
    assert all(r.headers["authorization"] == f"Bearer {ways.TOKEN}" for r in peer.requests)
    return looked


def test_it_says_that_it_is_repeated_and_can_be_polled_but_not_searched() -> None:
    asking: OutcomeLookup = asking_resend()
    assert (asking.can_find, asking.can_poll) == (Capability.REPLAY, True)
    question = Question(Channel.EMAIL, ways.REFERENCE, NOW, NOW + timedelta(seconds=9))
    assert asking.find(question, 5.0) == CannotTell("cannot_be_asked")


@pytest.mark.parametrize(("word", "status", "detail"), MEANINGS)
def test_p4_each_last_event_has_one_meaning_and_is_read_with_a_get_alone(
    word: str, status: ReceiptStatus, detail: Detail | None
) -> None:
    looked = polled(reply(200, message(word)))
    assert isinstance(looked, Found)
    [receipt] = looked.receipts
    assert (receipt.status, receipt.detail, receipt.provider_code) == (status, detail, word)
    assert receipt.provider_message_id == ways.MESSAGE_ID
    assert receipt.occurred_at == (AT if status is S.ACCEPTED else None)


@pytest.mark.parametrize(
    ("answer", "looked"),
    [
        (reply(404, {"statusCode": 404, "name": "not_found", "message": "x"}), NotFound()),
        (reply(404, {"message": "x"}), CannotTell("status_404")),
        (reply(401, {"statusCode": 401, "name": "restricted_api_key"}), CannotTell("status_401")),
        (reply(200, message("sent", id="other")), CannotTell("not_theirs")),
        (reply(503, b"<html>"), CannotTell("status_503")),
        (reply(200, b"<html>"), CannotTell("not_json")),
    ],
)
def test_p3_a_poll_that_tells_nothing_says_so(answer: bytes, looked: Looked) -> None:
    assert polled(answer) == looked


def test_an_id_that_is_none_is_not_asked_about() -> None:
    with api() as peer:
        assert asking_resend(peer.url).poll("../domains", 1.0) == CannotTell("bad_id")
    assert peer.connections == 0


@pytest.mark.parametrize(
    ("answer", "ok", "what"),
    [
        (reply(200, {"data": []}), True, "answered 200"),
        (reply(403, {"statusCode": 403, "name": "invalid_api_key"}), False, "auth_error"),
        (
            reply(401, {"statusCode": 401, "name": "restricted_api_key"}),
            False,
            "the key may send but not read: no message can be polled",
        ),
        (reply(502, b"<html>"), False, "status_502"),
    ],
)
def test_the_probe_reads_and_says_shortly_how_it_went(answer: bytes, ok: bool, what: str) -> None:
    with api(answer) as peer, closing(asking_resend(peer.url)) as asking:
        probed = asking.probe(5.0)
    assert (probed.ok, probed.what) == (ok, what)
    assert peer.lines == ["GET /domains HTTP/1.1"]


# --- webhooks


def event(kind: str = "email.delivered", **data: object) -> dict[str, Any]:
    email = {
        "email_id": ways.MESSAGE_ID,
        "created_at": "2033-05-01T11:59:00.000Z",
        "from": ways.FROM_ADDRESS,
        "to": [ways.ADDRESS],
        "subject": ways.SUBJECT,
        "tags": {"notice_ref": ways.REFERENCE},
    }
    return {"type": kind, "created_at": AT_TEXT, "data": {**email, **data}}


def called_back(
    body: bytes, *, signed_id: str = "msg_1", at: datetime = NOW, secret: str = SECRET
) -> Callback:
    """A webhook that the vendor's own library signed."""
    headers = {
        "Svix-Id": signed_id,
        "Svix-Timestamp": str(int(at.timestamp())),
        "Svix-Signature": Webhook(secret).sign(signed_id, at, body.decode()),
    }
    return Callback("https://notices.example.test/callbacks/resend/", headers, body)


def parsed(callback: Callback) -> list[ProviderReceipt]:
    return list(asking_resend(now=lambda: NOW).parse(callback))


def told(document: object, **signing: Any) -> ProviderReceipt:
    [receipt] = parsed(called_back(json.dumps(document).encode(), **signing))
    return receipt


@pytest.mark.parametrize(("word", "status", "detail"), MEANINGS)
def test_each_webhook_has_one_meaning(
    word: str, status: ReceiptStatus, detail: Detail | None
) -> None:
    receipt = told(event(f"email.{word}"))
    assert (receipt.status, receipt.detail, receipt.provider_code) == (status, detail, word)
    assert (receipt.reference, receipt.provider_message_id) == (ways.REFERENCE, ways.MESSAGE_ID)
    assert receipt.occurred_at == AT


@pytest.mark.parametrize(
    ("kind", "sub_kind", "detail"),
    [
        ("Permanent", "NoEmail", D.INVALID_DESTINATION),
        ("Permanent", "General", D.UNCLASSIFIED),
        ("Transient", "General", D.UNREACHABLE),
        ("Transient", "MailboxFull", D.MAILBOX_FULL),
        ("Transient", "ContentRejected", D.CONTENT_REJECTED),
        ("Undetermined", "Undetermined", D.UNCLASSIFIED),
        ("Transient", "a b", D.UNREACHABLE),
    ],
)
def test_a_bounce_is_the_end_and_its_kind_tells_why(
    kind: str, sub_kind: str, detail: Detail
) -> None:
    bounce = {"type": kind, "subType": sub_kind, "message": ways.ADDRESS, "diagnosticCode": []}
    receipt = told(event("email.bounced", bounce=bounce))
    assert (receipt.status, receipt.detail) == (S.FAILED, detail)
    assert receipt.provider_code in (sub_kind, "bounced")


def test_tags_may_also_be_a_list_of_pairs() -> None:
    tags = [{"name": "other", "value": "x"}, {"name": "notice_ref", "value": ways.REFERENCE}, 7]
    assert told(event(tags=tags)).reference == ways.REFERENCE
    assert told(event(tags=None)).reference is None


def test_an_event_is_the_same_one_however_often_and_whenever_it_is_told() -> None:
    first = told(event())
    again = told(event(), at=NOW + timedelta(seconds=250))
    other = told(event(), signed_id="msg_2")
    assert first.identity == again.identity != other.identity


@pytest.mark.parametrize("kind", ["domain.created", "contact.updated", "email.received"])
def test_what_is_about_no_email_of_ours_gives_nothing(kind: str) -> None:
    assert parsed(called_back(json.dumps(event(kind)).encode())) == []


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        b"<html>",
        b'{"type":7,"data":{}}',
        b'{"type":"email.sent","data":{"email_id":"a b"}}',
        b'{"type":"email.sent","data":[]}',
        b'{"type":"email.sent"}',
    ],
)
def test_a_genuine_webhook_that_cannot_be_read_is_said_to_be_so(body: bytes) -> None:
    with pytest.raises(CallbackUnreadable):
        parsed(called_back(body))


BODY = json.dumps(event()).encode()
GOOD = called_back(BODY)


def spoilt(name: str, value: str | None) -> Callback:
    headers = {key: given for key, given in GOOD.headers.items() if key.lower() != name}
    return Callback(GOOD.url, headers if value is None else {**headers, name: value}, BODY)


def test_several_signatures_may_stand_there() -> None:
    both = f"v1,AAAA v2,BBBB {GOOD.headers['Svix-Signature']}"
    assert len(parsed(spoilt("svix-signature", both))) == 1


@pytest.mark.parametrize(
    "callback",
    [
        Callback(GOOD.url, GOOD.headers, BODY + b" "),
        spoilt("svix-id", "msg_2"),
        spoilt("svix-id", None),
        spoilt("svix-timestamp", str(int(NOW.timestamp()) + 1)),
        spoilt("svix-timestamp", None),
        spoilt("svix-signature", "v1,AAAA"),
        spoilt("svix-signature", ""),
        spoilt("svix-signature", None),
        called_back(BODY, secret="whsec_" + base64.b64encode(b"another key of theirs").decode()),
        called_back(BODY, at=NOW - timedelta(seconds=301)),
        called_back(BODY, at=NOW + timedelta(seconds=301)),
    ],
)
def test_p12_what_the_secret_did_not_sign_just_now_is_refused(callback: Callback) -> None:
    with pytest.raises(CallbackRefused):
        parsed(callback)


def test_standard_webhooks_own_header_names_are_not_resends() -> None:
    ours = {
        ID_HEADER: GOOD.headers["Svix-Id"],
        TIMESTAMP_HEADER: GOOD.headers["Svix-Timestamp"],
        SIGNATURE_HEADER: GOOD.headers["Svix-Signature"],
    }
    with pytest.raises(CallbackRefused):
        parsed(Callback(GOOD.url, ours, BODY))


@pytest.mark.parametrize("keys", [[], [b""]])
def test_without_a_secret_nobody_is_let_in(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="signing secret"):
        ResendAsking(Secret(ways.TOKEN), keys, "http://127.0.0.1:1", now=lambda: NOW)
