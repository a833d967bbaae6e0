"""Unknown outcomes are found by the look-up that the provider has, and never sent again."""

from __future__ import annotations

from pathlib import Path

import pytest

from notifier.store.embedded import EmbeddedServer
from tests.channels.conftest import TIMES, Channels, both_channels
from tests.database import fresh_database

AFTER_ACCEPTANCE = (
    "hang-and-silent",
    "drop-after-accept",
    "reset-after-accept",
    "truncate",
    "junk",
)


@pytest.mark.parametrize("fate", [*AFTER_ACCEPTANCE, "error-after-accept"])
def test_p3_an_email_that_was_taken_unheard_is_found_by_our_reference(
    channels: Channels, fate: str
) -> None:
    event = channels.event(fate, mode="email_only")
    channels.app.admit(event)
    channels.reaches(event, "email", "accepted", "delivered")

    states = [state for state, _ in channels.moves(event, "email")]
    assert channels.mails(event) == 1
    assert states.count("attempted") == 1
    assert ("unknown" in states) or states[-1] == "delivered"


@pytest.mark.parametrize("fate", ["hang-and-silent", "reset-after-accept", "error-after-accept"])
def test_p3_a_text_that_was_taken_unheard_is_found_by_recipient_and_time(
    channels: Channels, fate: str
) -> None:
    event = channels.event("deliver", fate, mode="sms_only")
    before = channels.texts(event)
    channels.app.admit(event)
    channels.reaches(event, "sms", "accepted", "delivered")

    states = [state for state, _ in channels.moves(event, "sms")]
    assert channels.texts(event) == before + 1
    assert states.count("attempted") == 1


def test_p3_two_texts_to_one_number_are_never_told_apart_by_time(channels: Channels) -> None:
    first = channels.event("deliver", "hang-and-silent", mode="sms_only", life_s=16)
    before = channels.texts(first)
    second = channels.event("deliver", "hang-and-silent", mode="sms_only", life_s=16)
    second["destinations"]["sms"] = first["destinations"]["sms"]
    channels.around.auth.person(
        second["reset_request_id"],
        email=second["destinations"]["email"],
        sms=first["destinations"]["sms"],
    )
    channels.app.admit(first)
    channels.app.admit(second)
    for event in (first, second):
        channels.reaches(event, "sms", "expired", within_s=40)
        assert channels.moves(event, "sms")[-1] == ("expired", "unknown_at_expiry")
    assert channels.texts(first) == before + 2


def test_p3_a_message_that_nobody_finds_stays_unknown_until_it_expires(channels: Channels) -> None:
    event = channels.event("lost-after-accept", mode="email_only", life_s=12)
    channels.app.admit(event)
    channels.reaches(event, "email", "expired", within_s=30)

    assert channels.mails(event) == 1
    assert channels.moves(event, "email")[-1] == ("expired", "unknown_at_expiry")
    assert "looked_not_found" in channels.reasons(event)


def test_an_absence_that_the_policy_calls_proof_leads_to_one_more_attempt(
    postgres: EmbeddedServer, tmp_path: Path
) -> None:
    policy = 'absence_conclusive = ["postmark"]\n' + TIMES
    with (
        fresh_database(postgres) as url,
        both_channels(url, tmp_path, policy=policy) as channels,
    ):
        event = channels.event("lost-after-accept", mode="email_only")
        address = event["destinations"]["email"]
        channels.postmark.script("lost-after-accept", recipient=address, times=1)
        channels.postmark.script("deliver", recipient=address)
        channels.app.admit(event)
        channels.reaches(event, "email", "delivered")

        assert channels.mails(event) == 2
        assert ("queued", "reconciled_absent") in channels.moves(event, "email")
        attempts = channels.delivery(event, "email")["attempts"]
        assert [each["class"] for each in attempts] == ["first", "retry-1"]
        assert channels.reasons(event).count("looked_not_found") >= 3


def test_p3_a_provider_that_cannot_be_asked_now_is_asked_again(channels: Channels) -> None:
    channels.postmark.script_looks("unavailable", times=2)
    event = channels.event("hang-and-silent", mode="email_only")
    channels.app.admit(event)
    channels.reaches(event, "email", "accepted", "delivered")

    assert channels.mails(event) == 1
    assert "reconciled" in channels.reasons(event)
