"""When a text goes, waits or is dropped, seen from outside."""

from __future__ import annotations

from pathlib import Path

from notifier.store.embedded import EmbeddedServer
from tests.channels.conftest import TIMES, Channels, both_channels
from tests.database import fresh_database
from tests.running import until


def test_p6_an_email_without_news_makes_way_for_one_text(channels: Channels) -> None:
    event = channels.event("lost")
    channels.app.admit(event)
    channels.reaches(event, "sms", "delivered")

    assert ("queued", "fallback_email_unconfirmed") in channels.moves(event, "sms")
    assert (channels.mails(event), channels.texts(event)) == (1, 1)


def test_p6_an_unknown_email_makes_way_for_one_text(channels: Channels) -> None:
    event = channels.event("lost-after-accept")
    channels.app.admit(event)
    channels.reaches(event, "sms", "delivered")

    assert ("queued", "fallback_email_unknown") in channels.moves(event, "sms")
    assert (channels.mails(event), channels.texts(event)) == (1, 1)


def test_an_email_that_cannot_be_sent_in_time_makes_way_and_stays_away(channels: Channels) -> None:
    event = channels.event("deliver")
    request = event["reset_request_id"]
    channels.around.auth.script(status=503, times=50, reset_request_id=request)
    channels.app.admit(event)
    channels.reaches(event, "email", "standby")
    channels.around.auth.clear()
    channels.around.auth.person(
        request, email=event["destinations"]["email"], sms=event["destinations"]["sms"]
    )
    channels.reaches(event, "sms", "delivered")

    assert (channels.mails(event), channels.texts(event)) == (0, 1)
    assert ("standby", "fallback_goes_first") in channels.moves(event, "email")
    assert ("queued", "fallback_email_not_sent") in channels.moves(event, "sms")


def test_a_bounce_after_delivery_still_brings_the_text(channels: Channels) -> None:
    event = channels.event("bounce-after-delivery")
    channels.app.admit(event)
    channels.reaches(event, "sms", "delivered")

    assert ("failed", "bounced_after_delivery") in channels.moves(event, "email")
    assert (channels.mails(event), channels.texts(event)) == (1, 1)


def test_a_refused_address_brings_the_text_at_once(channels: Channels) -> None:
    event = channels.event("inactive")
    channels.app.admit(event)
    channels.reaches(event, "sms", "delivered")

    assert channels.delivery(event, "email")["attempts"][0]["outcome"] == "refused"
    assert ("queued", "fallback_email_failed") in channels.moves(event, "sms")


def test_a_text_without_consent_or_region_is_never_sent(channels: Channels) -> None:
    event = channels.event("bounce-hard")
    event["policy"]["inputs"]["sms_consent"] = False
    channels.app.admit(event)
    channels.reaches(event, "email", "failed")

    assert channels.texts(event) == 0
    assert channels.app.status(event["event_id"])["state"] == "failed"
    assert channels.moves(event, "sms") == [("suppressed", "no_consent")]


def test_p6_a_policy_that_holds_keeps_the_text_until_its_stop_time(
    postgres: EmbeddedServer, tmp_path: Path
) -> None:
    policy = 'on_unconfirmed = "hold"\non_unknown = "hold"\n' + TIMES
    with (
        fresh_database(postgres) as url,
        both_channels(url, tmp_path, policy=policy) as channels,
    ):
        event = channels.event("lost", life_s=14)
        channels.app.admit(event)
        until(
            lambda: "fallback_held" in channels.reasons(event),
            15,
            lambda: str(channels.reasons(event)),
        )
        channels.reaches(event, "sms", "suppressed", within_s=30)

        assert channels.texts(event) == 0
        assert channels.moves(event, "sms")[-1] == ("suppressed", "fallback_held_by_policy")


def test_p10_a_halted_text_stays_back_and_the_email_is_not_held_up(channels: Channels) -> None:
    with channels.around.halted("channel:sms"):
        event = channels.event("bounce-hard")
        channels.app.admit(event)
        channels.reaches(event, "email", "failed")
        assert channels.delivery(event, "sms")["state"] == "standby"
        assert channels.texts(event) == 0
    channels.reaches(event, "sms", "delivered")
    assert channels.texts(event) == 1
