"""The five stories that the product is about, each as the peers, the trail and an agent see it."""

from __future__ import annotations

from peers.events import Event
from tests.channels.conftest import Channels


def remaining_falls(channels: Channels, event: Event) -> bool:
    left = [row["remaining_us"] for row in channels.app.trail(event["event_id"])]
    return left == sorted(left, reverse=True)


def test_accepted_then_delivered(channels: Channels) -> None:
    event = channels.event("deliver")
    channels.app.admit(event)
    channels.reaches(event, "email", "delivered")

    status = channels.app.status(event["event_id"])
    assert (status["state"], status["support_word"]) == ("complete", "delivered")
    assert "delivered" in status["headline"]
    assert (channels.mails(event), channels.texts(event)) == (1, 0)
    assert channels.moves(event, "email") == [
        ("queued", "primary_selected"),
        ("claimed", "claimed"),
        ("attempted", "attempt_started"),
        ("accepted", "provider_accepted"),
        ("delivered", "receipt"),
    ]
    assert channels.delivery(event, "sms")["state"] == "standby"
    assert remaining_falls(channels, event)


def test_email_failed_then_text_delivered(channels: Channels) -> None:
    event = channels.event("bounce-hard")
    channels.app.admit(event)
    channels.reaches(event, "sms", "delivered")

    status = channels.app.status(event["event_id"])
    assert (status["state"], status["support_word"]) == ("complete", "delivered")
    assert "text" in status["headline"].lower()
    assert (channels.mails(event), channels.texts(event)) == (1, 1)
    assert channels.delivery(event, "email")["state"] == "failed"
    assert ("queued", "fallback_email_failed") in channels.moves(event, "sms")
    assert remaining_falls(channels, event)


def test_p5_no_news_before_expiry(channels: Channels) -> None:
    event = channels.event("lost", life_s=12)
    event["policy"]["inputs"]["sms_consent"] = False
    channels.app.admit(event)
    channels.reaches(event, "email", "expired", within_s=30)

    assert (channels.mails(event), channels.texts(event)) == (1, 0)
    assert channels.moves(event, "email")[-1] == ("expired", "unconfirmed_at_expiry")
    assert channels.moves(event, "sms") == [("suppressed", "no_consent")]
    status = channels.app.status(event["event_id"])
    assert (status["state"], status["remaining_s"]) == ("expired", 0)
    assert "expired" in status["headline"]
    assert "new reset" in status["customer_action"].lower()
    assert remaining_falls(channels, event)


def test_p4_the_same_reconciliation_twice(channels: Channels) -> None:
    event = channels.event("hang-and-silent")
    event["policy"]["inputs"]["sms_consent"] = False
    channels.app.admit(event)
    channels.reaches(event, "email", "delivered")

    looks = channels.postmark.journal(phase="look")
    assert len(looks) >= 2, "once for the unknown outcome, once for news of what was found"
    assert ("unknown", "timeout") in channels.moves(event, "email")
    assert channels.reasons(event).count("reconciled") == 1
    assert (channels.mails(event), channels.texts(event)) == (1, 0)
    assert "delivered" in channels.app.status(event["event_id"])["headline"]
    assert remaining_falls(channels, event)


def test_p12_a_late_callback_after_expiry(channels: Channels) -> None:
    event = channels.event("lost", life_s=9)
    event["policy"]["inputs"]["sms_consent"] = False
    channels.app.admit(event)
    channels.reaches(event, "email", "expired", within_s=30)

    message = channels.postmark.stored(recipient=event["destinations"]["email"])[0]
    answers = channels.postmark.tell(message["message_id"], "Delivered")

    assert answers == [204]
    last = channels.app.trail(event["event_id"])[-1]
    assert last["reason"] == "late_receipt"
    assert last["remaining_us"] < 0
    status = channels.app.status(event["event_id"])
    assert status["state"] == "expired"
    assert "expired" in status["headline"]
    assert channels.mails(event) == 1
    assert remaining_falls(channels, event)
