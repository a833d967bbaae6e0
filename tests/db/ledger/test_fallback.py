"""The table of the fallback through desk, claim and intent, on either side of each boundary.

A notice of these tests lives ten minutes from noon: fallback time 300 s; what an email's state
leads to is seen a microsecond before it, at it and after it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.flow import put_back
from notifier.store.ledger.intent import Verdict
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.stories import EMAIL, SMS, TICK, S, Story, begin_story
from tests.db.rig import BOTH
from tests.db.test_foundation import NOON


def test_the_boundaries_are_where_the_policy_puts_them(told: Story) -> None:
    assert told.rig.notice(told.notice_id)["fallback_at"] == told.fallback_at
    assert told.fallback_at < told.stop_at(SMS) < told.stop_at(EMAIL)


def queued(_story: Story) -> None:
    """The email could not be started until now."""


def claimed(story: Story) -> None:
    story.claim(EMAIL)


def ended(outcome: Outcome) -> Callable[[Story], None]:
    return lambda story: story.answer(story.start(EMAIL), outcome)


UNCLEAR = [
    pytest.param(queued, "standby", "fallback_email_not_sent", id="queued"),
    pytest.param(claimed, "standby", "fallback_email_not_sent", id="claimed"),
    pytest.param(ended(Unknown(Reason.TIMEOUT)), "unknown", "fallback_email_unknown", id="unknown"),
    pytest.param(ended(Accepted("pm-1")), "accepted", "fallback_email_unconfirmed", id="accepted"),
]


@pytest.mark.parametrize(("have", "email", "reason"), UNCLEAR)
def test_p6_an_email_without_a_word_makes_way_at_the_fallback_time_and_not_before(
    told: Story, have: Callable[[Story], None], email: str, reason: str
) -> None:
    have(told)
    told.at(told.fallback_at - TICK)
    assert told.states[1] == "standby"
    assert told.claim(SMS) == []

    told.at(told.fallback_at)
    assert told.states[0] == email
    assert told.stands(SMS) == ("queued", reason)
    told.at(told.fallback_at + TICK)
    assert told.claim(EMAIL) == []
    assert told.intend(told.claim(SMS)[0]) is Verdict.STARTED


@pytest.mark.parametrize("seconds", [-1, 0, 1])
def test_p6_a_claimed_email_starts_before_the_fallback_time_or_never(
    told: Story, seconds: int
) -> None:
    [claim] = told.claim(EMAIL)
    told.clock.freeze(told.fallback_at + timedelta(seconds=seconds))

    verdict = told.intend(claim)
    put_back.stand_back(told.rig.desk, claim, verdict)

    if seconds < 0:
        assert (verdict, told.states) == (Verdict.STARTED, ("attempted", "standby"))
    else:
        assert (verdict, told.states) == (Verdict.FALLBACK_DUE, ("standby", "queued"))
        assert told.claim(EMAIL) == []


def test_an_open_call_is_waited_for_until_its_own_deadline(told: Story) -> None:
    told.clock.freeze(told.fallback_at - timedelta(seconds=1))
    claim = told.start(EMAIL)
    deadline = told.rig.attempts(told.notice_id)[0]["deadline"]
    assert deadline > told.fallback_at

    for moment in (told.fallback_at, deadline - TICK):
        told.at(moment)
        told.rig.settle(told.notice_id)
        assert told.states == ("attempted", "standby")
    told.at(deadline)
    assert told.states == ("attempted", "queued")
    assert told.stands(SMS)[1] == "fallback_email_unknown"

    told.answer(claim, NotAccepted(Detail.UNREACHABLE))
    assert told.stands(EMAIL) == ("standby", "fallback_goes_first")


def test_an_answer_at_the_fallback_time_decides_by_what_it_says(told: Story) -> None:
    told.clock.freeze(told.fallback_at - timedelta(seconds=1))
    claim = told.start(EMAIL)
    told.clock.freeze(told.fallback_at)

    told.answer(claim, Accepted("pm-1"))

    assert told.stands(SMS) == ("queued", "fallback_email_unconfirmed")


@pytest.mark.parametrize("seconds", [1, 299, 301])
def test_a_failed_email_brings_the_text_at_once(told: Story, seconds: int) -> None:
    claim = told.start(EMAIL)
    told.clock.freeze(NOON + timedelta(seconds=min(seconds, 15)))
    told.answer(claim, Accepted("pm-1"))
    told.clock.freeze(NOON + timedelta(seconds=seconds))

    told.tell(S.FAILED)

    assert told.stands(SMS) == ("queued", "fallback_email_failed")


def test_a_suppressed_email_brings_the_text_at_once(told: Story) -> None:
    [claim] = told.claim(EMAIL)
    put_back.suppress(told.rig.desk, claim, Reason.NO_DESTINATION)

    assert told.stands(SMS) == ("queued", "fallback_email_suppressed")


@pytest.mark.parametrize(
    ("held", "outcome"),
    [
        ("on_unknown", Unknown(Reason.TIMEOUT)),
        ("on_unconfirmed", Accepted("pm-1")),
    ],
)
def test_a_policy_that_holds_keeps_the_text_in_reserve_until_its_stop_time(
    make_rig: MakeRig, clock: Clock, held: str, outcome: Outcome
) -> None:
    story = begin_story(make_rig(channels=BOTH, reports=True, policy={held: "hold"}), clock)
    story.answer(story.start(EMAIL), outcome)

    story.at(story.fallback_at - TICK)
    assert "fallback_held" not in story.rig.reasons(story.notice_id)
    for moment in (story.fallback_at, story.fallback_at + TICK, story.stop_at(SMS) - TICK):
        story.at(moment)
        assert story.states[1] == "standby"
        assert story.rig.reasons(story.notice_id).count("fallback_held") == 1
    story.at(story.stop_at(SMS))
    assert story.stands(SMS) == ("suppressed", "fallback_held_by_policy")


def test_a_bounce_after_a_hold_still_brings_the_text(make_rig: MakeRig, clock: Clock) -> None:
    rig = make_rig(channels=BOTH, reports=True, policy={"on_unconfirmed": "hold"})
    story = begin_story(rig, clock)
    story.answer(story.start(EMAIL), Accepted("pm-1"))
    story.at(story.fallback_at)

    story.tell(S.FAILED)

    assert story.stands(SMS) == ("queued", "fallback_email_failed")
