"""Callbacks: genuine, forged, repeated, early, late, unordered, and about nothing of ours."""

from __future__ import annotations

import base64
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

from peers.events import Event
from peers.twilio_words import signature
from tests.channels.conftest import CALLBACK_PASSWORD, OLD_PASSWORD, OLD_TOKEN, Channels
from tests.running import until


def post(
    channels: Channels, path: str, body: bytes, kind: str, **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", channels.app.port, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, body, {"content-type": kind, **named})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def postmark_says(
    channels: Channels,
    message_id: str,
    *,
    password: str = CALLBACK_PASSWORD,
    kind: str = "Delivery",
) -> int:
    document = {
        "RecordType": kind,
        "MessageID": message_id,
        "DeliveredAt": "2026-11-29T12:00:00Z",
        "Metadata": {},
    }
    basic = base64.b64encode(f"postmark:{password}".encode()).decode()
    status, _ = post(
        channels,
        "/callbacks/postmark/",
        json.dumps(document).encode(),
        "application/json",
        authorization=f"Basic {basic}",
    )
    return status


def taken_message(channels: Channels, event: Event) -> str:
    """Postmark's id of the one message for an event's person."""
    return str(channels.postmark.stored(recipient=event["destinations"]["email"])[0]["message_id"])


def receipts(channels: Channels) -> int:
    return int(channels.around.rows("SELECT count(*) AS n FROM receipt")[0]["n"])


def test_a_forged_callback_is_refused_before_anything_is_looked_at(channels: Channels) -> None:
    before = receipts(channels)
    assert postmark_says(channels, "some-id", password="guessed") == 401
    assert post(channels, "/callbacks/postmark/", b"{", "application/json")[0] == 401
    fields = {"MessageSid": "SM" + "0" * 32, "MessageStatus": "delivered"}
    status, body = post(
        channels,
        "/callbacks/twilio/some-reference",
        urlencode(fields).encode(),
        "application/x-www-form-urlencoded",
        x_twilio_signature="AAAA",
    )
    assert status == 401
    assert b"SM00" not in body
    assert receipts(channels) == before
    assert post(channels, "/callbacks/nobody/", b"{}", "application/json")[0] == 404


def test_the_same_callback_many_times_has_one_effect(channels: Channels) -> None:
    event = channels.event("lost", mode="email_only")
    channels.app.admit(event)
    channels.reaches(event, "email", "accepted")
    message = taken_message(channels, event)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: postmark_says(channels, message), range(24)))

    assert set(answers) == {204}
    assert channels.reasons(event).count("receipt") == 1
    found = channels.around.rows(
        "SELECT count(*) AS n FROM receipt WHERE provider_message_id = %s", message
    )
    assert found[0]["n"] == 1


def test_p12_a_receipt_before_our_own_record_stands(channels: Channels) -> None:
    event = channels.event("callback-first", mode="email_only")
    channels.app.admit(event)
    channels.reaches(event, "email", "delivered")
    until(
        lambda: channels.delivery(event, "email")["attempts"][0]["outcome"] == "accepted",
        10,
        "the call's own answer to be written",
    )

    states = [state for state, _ in channels.moves(event, "email")]
    assert states[-1] == "delivered"
    assert "accepted" not in states[states.index("delivered") :]
    assert channels.mails(event) == 1


def test_unordered_callbacks_end_as_delivered(channels: Channels) -> None:
    for fate in ("reordered", "duplicate", "batched", "bounce-soft"):
        event = channels.event(fate, mode="email_only")
        channels.app.admit(event)
        channels.reaches(event, "email", "delivered")
        assert channels.delivery(event, "email")["state"] == "delivered"


def test_callbacks_for_unknown_references_are_kept_and_matched_when_known(
    channels: Channels,
) -> None:
    before = receipts(channels)
    assert {postmark_says(channels, f"of-somebody-else-{n}") for n in range(10)} == {204}
    assert receipts(channels) == before + 10
    parked = channels.around.rows("SELECT count(*) AS n FROM receipt WHERE applied_at IS NULL")
    assert parked[0]["n"] >= 10


def test_a_callback_waits_for_nobody_and_is_applied_later(channels: Channels) -> None:
    event = channels.event("lost", mode="email_only")
    channels.app.admit(event)
    channels.reaches(event, "email", "accepted")
    message = taken_message(channels, event)

    with channels.around.locked(event):
        assert postmark_says(channels, message) == 204
        assert channels.delivery(event, "email")["state"] == "accepted"

    channels.reaches(event, "email", "delivered")


def test_twilio_signs_the_public_address_whatever_host_was_asked(channels: Channels) -> None:
    event = channels.event("deliver", "lost", mode="sms_only")
    channels.app.admit(event)
    channels.reaches(event, "sms", "accepted")
    attempt = channels.delivery(event, "sms")["attempts"][0]
    path = f"/callbacks/twilio/{attempt['reference']}"
    fields = {
        "AccountSid": channels.twilio.account_sid,
        "MessageSid": channels.delivery(event, "sms")["provider_message_id"],
        "MessageStatus": "delivered",
    }
    public = f"{channels.app.base_url}{path}"
    sign = signature(channels.twilio.auth_token, public, fields)

    status, _ = post(
        channels,
        path,
        urlencode(fields).encode(),
        "application/x-www-form-urlencoded",
        x_twilio_signature=sign,
        host="elsewhere.example",
        x_forwarded_host="elsewhere.example",
        x_forwarded_proto="https",
    )

    assert status == 204
    channels.reaches(event, "sms", "delivered")


def test_callbacks_made_with_the_old_secrets_are_genuine_until_they_are_dropped(
    channels: Channels,
) -> None:
    assert postmark_says(channels, "of-an-old-password", password=OLD_PASSWORD) == 204
    assert postmark_says(channels, "of-a-dropped-one", password="dropped") == 401
    path = "/callbacks/twilio/some-reference"
    fields = {
        "AccountSid": channels.twilio.account_sid,
        "MessageSid": "SM" + "1" * 32,
        "MessageStatus": "delivered",
    }
    for token, status in ((OLD_TOKEN, 204), ("dropped-token", 401)):
        sign = signature(token, f"{channels.app.base_url}{path}", fields)
        answer, _ = post(
            channels,
            path,
            urlencode(fields).encode(),
            "application/x-www-form-urlencoded",
            x_twilio_signature=sign,
        )
        assert answer == status


def test_a_word_that_nobody_knows_changes_nothing_and_is_shown(channels: Channels) -> None:
    event = channels.event("lost", mode="email_only")
    channels.app.admit(event)
    channels.reaches(event, "email", "accepted")
    message = taken_message(channels, event)

    assert postmark_says(channels, message, kind="NeverHeardOf") == 204

    assert channels.delivery(event, "email")["state"] == "accepted"
    assert channels.reasons(event)[-1] == "unmapped"
