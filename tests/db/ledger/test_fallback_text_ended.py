"""A text that cannot help, or did not: the email goes on, or comes back while there is time."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.flow import halts, put_back
from notifier.store.ledger.claim import Claim
from notifier.store.reads import due
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.stories import EMAIL, SMS, TICK, S, Story
from tests.db.ledger.telling import POSTMARK, TWILIO
from tests.db.rig import BOTH
from tests.db.test_foundation import NOON
from tests.db.waiting import together


@pytest.mark.parametrize("scope", ["channel:sms", "provider:twilio"])
def test_p10_the_email_goes_on_where_the_text_is_halted(told: Story, scope: str) -> None:
    halts.engage(told.rig.database, scope=scope, reason="a drill", by="ops")

    told.at(told.fallback_at + TICK)
    assert told.states == ("queued", "standby")
    told.start(EMAIL)
    assert told.claim(SMS) == []


def test_a_text_that_was_halted_goes_when_the_halt_is_released(told: Story) -> None:
    halts.engage(told.rig.database, scope="channel:sms", reason="a drill", by="ops")
    told.answer(told.start(EMAIL), Refused(Detail.BLOCKED))
    assert told.states == ("failed", "standby")

    halts.release(told.rig.database, scope="channel:sms", reason="over", by="ops")
    told.at(told.fallback_at - TICK)

    assert told.stands(SMS) == ("queued", "fallback_email_failed")


def test_a_halted_text_for_an_email_that_ended_keeps_no_other_from_its_turn(told: Story) -> None:
    halts.engage(told.rig.database, scope="channel:sms", reason="a drill", by="ops")
    told.answer(told.start(EMAIL), Refused(Detail.BLOCKED))

    with told.rig.database.connection() as connection:
        assert due.fallback_due(connection) == []


def put_aside(story: Story) -> Claim:
    """The email was not sent in time, and the text is under way."""
    story.at(story.fallback_at)
    assert story.states == ("standby", "queued")
    return story.start(SMS)


def test_an_email_put_aside_comes_back_when_the_text_ends_in_time(told: Story) -> None:
    told.answer(put_aside(told), Refused(Detail.INVALID_DESTINATION))

    assert told.stands(EMAIL) == ("queued", "text_ended_in_time")
    told.start(EMAIL)
    assert told.started == ["email", "sms"]


@pytest.mark.parametrize(("before_us", "email"), [(1, "queued"), (0, "suppressed")])
def test_an_email_put_aside_comes_back_until_its_own_stop_time(
    told: Story, before_us: int, email: str
) -> None:
    text = put_aside(told)
    told.answer(text, Accepted("SM1"))
    told.at(told.stop_at(EMAIL) - timedelta(microseconds=before_us))

    told.tell(S.FAILED, SMS)
    assert told.states == (email, "failed")


@pytest.mark.parametrize("outcome", [Accepted("SM1"), Unknown(Reason.TIMEOUT)], ids=str)
def test_an_email_put_aside_stays_away_while_the_text_may_arrive(
    told: Story, outcome: Outcome
) -> None:
    told.answer(put_aside(told), outcome)

    told.at(told.stop_at(EMAIL) - TICK)
    assert told.states[0] == "standby"
    assert told.claim(EMAIL) == []
    told.at(told.stop_at(EMAIL))
    assert told.stands(EMAIL) == ("suppressed", "superseded_by_fallback")


def test_a_text_that_never_got_out_hands_over_to_the_email_at_its_stop_time(told: Story) -> None:
    told.at(told.fallback_at)
    told.at(told.stop_at(SMS))

    assert told.stands(SMS) == ("expired", "too_close_to_expiry")
    assert told.stands(EMAIL) == ("queued", "text_ended_in_time")
    told.start(EMAIL)
    assert told.started == ["email"]


def test_p5_nothing_comes_back_after_the_stop_times(told: Story) -> None:
    told.at(told.fallback_at)
    told.at(told.stop_at(EMAIL))

    assert told.states == ("expired", "expired")
    assert told.claim(EMAIL) + told.claim(SMS) == []


def test_p6_an_email_proven_unsent_after_the_text_was_queued_does_not_start_again(
    told: Story,
) -> None:
    email = told.start(EMAIL)
    told.answer(email, Unknown(Reason.TIMEOUT))
    told.at(told.fallback_at)
    assert told.states == ("unknown", "queued")

    told.answer(email, NotAccepted(Detail.UNREACHABLE))

    assert told.stands(EMAIL) == ("standby", "fallback_goes_first")
    assert told.claim(EMAIL) == []
    told.start(SMS)
    assert told.started == ["email", "sms"]


def test_p6_a_text_is_started_once_however_the_email_turns(told: Story) -> None:
    """Every change that calls for a text, after one was refused."""
    told.answer(told.start(EMAIL), Accepted("pm-1"))
    told.at(told.fallback_at)
    told.answer(told.start(SMS), Refused(Detail.BLOCKED))

    told.tell(S.DELIVERED)
    told.tell(S.FAILED)
    for moment in (told.fallback_at + TICK, told.stop_at(SMS) - TICK, told.stop_at(EMAIL)):
        told.at(moment)

    assert told.states == ("failed", "failed")
    assert told.started == ["email", "sms"]


def test_p6_a_text_that_was_attempted_is_never_taken_again_from_reserve(told: Story) -> None:
    """No path leads there; the decision refuses it all the same."""
    told.answer(told.start(EMAIL), Accepted("pm-1"))
    told.rig.run("UPDATE delivery SET attempts = 1 WHERE channel = 'sms'")

    told.tell(S.FAILED)
    told.at(told.fallback_at + TICK)

    assert told.states == ("failed", "standby")
    assert told.claim(SMS) == []


def test_p6_the_sweep_the_claims_and_the_intents_at_once_never_start_both(
    make_rig: MakeRig, clock: Clock
) -> None:
    """An email that was claimed at the last moment against a fallback that is due."""
    rigs = [make_rig(channels=BOTH, reports=True) for _ in range(2)]
    stories = [Story(rig, clock, UUID(int=0)) for rig in rigs]
    for number in range(12):
        clock.freeze(NOON + timedelta(hours=number))
        notice_id = rigs[0].admit_for_both()
        for story in stories:
            story.notice_id = notice_id
        [email] = stories[0].claim(EMAIL)
        at = rigs[0].notice(notice_id)["fallback_at"]
        clock.freeze(at - TICK if number % 2 else at)

        def try_email(story: Story, claim: Claim) -> None:
            reference = f"ref-{claim.event_id}"
            told = story.rig.intent(claim, reference, provider=POSTMARK)
            put_back.stand_back(story.rig.desk, claim, told.verdict)

        def try_text(story: Story, moment: datetime) -> None:
            story.at(moment)
            for claim in story.claim(SMS):
                story.rig.intent(claim, f"text-{claim.event_id}", provider=TWILIO)

        together(partial(try_email, stories[0], email), partial(try_text, stories[1], clock.now()))

        assert len(stories[0].started) == 1 or number % 2 == 0
        assert len(stories[0].started) <= 1
        assert set(stories[0].states) & {"attempted", "queued"}
