"""A text that is not needed: the email is known to have arrived, before the text or after it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from notifier.domain.outcome import Accepted, NotAccepted
from notifier.domain.reasons import Detail
from notifier.flow import put_back, rescue
from notifier.store.ledger.intent import Verdict
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.stories import EMAIL, SMS, TICK, S, Story, begin_story
from tests.db.ledger.telling import receipt
from tests.db.rig import BOTH, BUDGET
from tests.db.test_foundation import NOON


def test_a_delivered_email_keeps_the_text_in_reserve_until_its_stop_time(told: Story) -> None:
    told.answer(told.start(EMAIL), Accepted("pm-1"))
    told.tell(S.DELIVERED)

    for moment in (told.fallback_at, told.stop_at(SMS) - TICK):
        told.at(moment)
        assert told.states == ("delivered", "standby")
    told.at(told.stop_at(SMS))
    assert told.stands(SMS) == ("suppressed", "primary_delivered")


@pytest.mark.parametrize(("before_us", "text"), [(1, "queued"), (0, "expired")])
def test_a_bounce_after_delivery_brings_the_text_until_its_stop_time(
    told: Story, before_us: int, text: str
) -> None:
    told.answer(told.start(EMAIL), Accepted("pm-1"))
    told.tell(S.DELIVERED)
    told.clock.freeze(told.stop_at(SMS) - timedelta(microseconds=before_us))

    told.tell(S.FAILED)

    assert told.states == ("failed", text)


def test_a_queued_text_goes_back_into_reserve_when_the_email_arrives(told: Story) -> None:
    told.answer(told.start(EMAIL), Accepted("pm-1"))
    told.at(told.fallback_at)
    assert told.states == ("accepted", "queued")

    told.tell(S.DELIVERED)
    assert told.stands(SMS) == ("standby", "primary_delivered")
    assert told.claim(SMS) == []

    told.tell(S.FAILED)
    assert told.stands(SMS) == ("queued", "fallback_email_failed")
    assert told.rig.reasons(told.notice_id).count("bounced_after_delivery") == 1


def test_a_claimed_text_stands_back_at_its_intent_when_the_email_arrives(told: Story) -> None:
    told.answer(told.start(EMAIL), Accepted("pm-1"))
    told.at(told.fallback_at)
    [claim] = told.claim(SMS)
    told.tell(S.DELIVERED)
    assert told.states == ("delivered", "claimed")

    verdict = told.intend(claim)
    put_back.stand_back(told.rig.desk, claim, verdict)

    assert verdict is Verdict.NOT_NEEDED
    assert told.stands(SMS) == ("standby", "primary_delivered")
    assert told.started == ["email"]


@pytest.mark.parametrize(
    ("takes_bounces", "stands"),
    [
        (True, ("standby", "primary_delivered")),
        (False, ("suppressed", "primary_accepted_final")),
    ],
)
def test_a_claimed_text_stands_back_for_an_acceptance_that_is_final(
    make_rig: MakeRig, clock: Clock, stands: tuple[str, str], *, takes_bounces: bool
) -> None:
    rig = make_rig(channels=BOTH, takes_bounces=takes_bounces)
    story = begin_story(rig, clock)
    email = story.start(EMAIL)
    story.clock.freeze(NOON + BUDGET + timedelta(seconds=3))
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)
    story.at(story.fallback_at)
    [text] = story.claim(SMS)

    story.answer(email, Accepted("<id@mail.example>"))
    verdict = story.intend(text)
    put_back.stand_back(rig.desk, text, verdict)

    assert verdict is Verdict.NOT_NEEDED
    assert story.stands(SMS) == stands
    assert rig.notice(story.notice_id)["state"] == "complete"


def test_a_text_that_was_started_is_not_called_back(told: Story) -> None:
    told.answer(told.start(EMAIL), Accepted("pm-1"))
    told.at(told.fallback_at)
    text = told.start(SMS)

    told.tell(S.DELIVERED)
    told.answer(text, NotAccepted(Detail.UNREACHABLE))

    assert told.states == ("delivered", "queued")
    told.clock.advance(60)
    [again] = told.claim(SMS)
    assert told.intend(again) is Verdict.STARTED
    assert told.rig.delivery(told.notice_id, SMS)["attempts"] == 2


def test_a_text_is_noted_as_avoidable_when_the_email_turns_out_to_have_arrived_before_it(
    told: Story,
) -> None:
    told.answer(told.start(EMAIL), Accepted("pm-1"))
    told.at(told.fallback_at)
    told.start(SMS)

    told.rig.tell(
        receipt(S.DELIVERED, "ref-email-1", occurred_at=told.fallback_at - timedelta(seconds=1))
    )

    assert told.rig.reasons(told.notice_id)[-1] == "fallback_was_avoidable"
