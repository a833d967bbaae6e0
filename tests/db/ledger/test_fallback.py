"""The table of the fallback through desk, claim and intent, on either side of each boundary.

A notice of these tests lives ten minutes from noon: fallback time 300 s; what an email's state
leads to is seen a microsecond before it, at it and after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.flow import expiry, halts, put_back, rescue
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.intent import Verdict
from notifier.store.reads import due
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, TWILIO, receipt
from tests.db.rig import BOTH, BUDGET, Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import together

EMAIL, SMS = BOTH
S = ReceiptStatus
TICK = timedelta(microseconds=1)
PROVIDERS = {EMAIL: POSTMARK, SMS: TWILIO}
SWEEPS = (expiry.decide_fallbacks, expiry.expire)


@dataclass
class Story:
    """One notice, its clock, and what happens to it."""

    rig: Rig
    clock: Clock
    notice_id: UUID

    @property
    def fallback_at(self) -> datetime:
        at: datetime = self.rig.trail(self.notice_id)[0]["recorded_at"] + timedelta(seconds=300)
        return at

    def stop_at(self, channel: Channel) -> datetime:
        at: datetime = self.rig.delivery(self.notice_id, channel)["stop_at"]
        return at

    def at(self, moment: datetime) -> None:
        """Be there, and let the sweeps run."""
        self.clock.freeze(moment)
        for sweep in SWEEPS:
            with self.rig.database.connection() as connection:
                sweep(self.rig.desk, connection)

    def claim(self, channel: Channel) -> list[Claim]:
        return self.rig.claim(channel=channel, provider=PROVIDERS[channel])

    def intend(self, claim: Claim) -> Verdict:
        reference = f"ref-{claim.channel}-{claim.fence}"
        provider = PROVIDERS[Channel(claim.channel)]
        return self.rig.intent(claim, reference, provider=provider).verdict

    def start(self, channel: Channel) -> Claim:
        [claim] = self.claim(channel)
        assert self.intend(claim) is Verdict.STARTED
        return claim

    def answer(self, claim: Claim, outcome: Outcome) -> None:
        self.rig.record(claim, outcome, f"ref-{claim.channel}-{claim.fence}")

    def tell(self, status: S, channel: Channel = EMAIL) -> None:
        self.rig.tell(receipt(status, f"ref-{channel}-1", provider=PROVIDERS[channel]))

    def stands(self, channel: Channel) -> tuple[str, str]:
        delivery = self.rig.delivery(self.notice_id, channel)
        return delivery["state"], delivery["reason"]

    @property
    def states(self) -> tuple[str, str]:
        return self.stands(EMAIL)[0], self.stands(SMS)[0]

    @property
    def started(self) -> list[str]:
        return sorted(row["channel"] for row in self.rig.attempts(self.notice_id))


@pytest.fixture
def told(make_rig: MakeRig, clock: Clock) -> Story:
    """A notice with its email queued and a text in reserve."""
    return begin_story(make_rig(channels=BOTH, reports=True), clock)


def begin_story(rig: Rig, clock: Clock) -> Story:
    clock.freeze(NOON)
    return Story(rig, clock, rig.admit_for_both())


def test_the_boundaries_are_where_the_policy_puts_them(told: Story) -> None:
    assert told.rig.notice(told.notice_id)["fallback_at"] == told.fallback_at
    assert told.fallback_at < told.stop_at(SMS) < told.stop_at(EMAIL)


# --- the email's state at the fallback time


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


# --- the email arrived


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


# --- the text cannot help, or did not


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
