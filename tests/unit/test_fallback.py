"""Every row of the fallback's table, a second before, at and after its boundary.

The notice of these tests lives ten minutes: fallback time 300 s, text's stop time 580 s,
email's stop time 585 s, expiry 600 s.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from notifier.domain.event import PolicyMode
from notifier.domain.fallback import at_intent, expiry_decisions, settle
from notifier.domain.fallback_view import Decision, DeliveryView, Note, NoticeView, Step
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel
from notifier.domain.states import DeliveryState as S

R = Reason
START = datetime(2026, 5, 3, 14, 0, tzinfo=UTC)
FALLBACK, SMS_STOP, EMAIL_STOP, EXPIRY = 300, 580, 585, 600
EMAIL, SMS = Channel.EMAIL, Channel.SMS


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def view(
    email: S, sms: S, second: float, *, more: dict[str, Any] | None = None, **notice: Any
) -> NoticeView:
    """`more` changes deliveries: keys such as `sms_halted` or `email_call_deadline`."""
    parts: dict[str, dict[str, Any]] = {"email": {}, "sms": {}}
    for key, value in (more or {}).items():
        channel, _, field = key.partition("_")
        parts[channel][field] = value
    return NoticeView(
        now=at(second),
        expires_at=at(EXPIRY),
        mode=notice.pop("mode", PolicyMode.EMAIL_THEN_SMS),
        email=DeliveryView(email, at(EMAIL_STOP), **parts["email"]),
        sms=DeliveryView(sms, at(SMS_STOP), **parts["sms"]),
        fallback_at=at(FALLBACK),
        **notice,
    )


def text_queued(reason: R) -> tuple[Step, ...]:
    return (Decision(SMS, S.QUEUED, reason),)


FINAL = {"email_acceptance_is_final": True}
NOTHING: tuple[Step, ...] = ()


# --- at once


@pytest.mark.parametrize("second", [0, FALLBACK - 1, FALLBACK, SMS_STOP - 1])
@pytest.mark.parametrize(
    ("email", "reason"),
    [
        (S.FAILED, R.FALLBACK_EMAIL_FAILED),
        (S.SUPPRESSED, R.FALLBACK_EMAIL_SUPPRESSED),
        (S.EXPIRED, R.FALLBACK_EMAIL_EXPIRED),
    ],
)
def test_an_email_that_ended_sends_the_text_at_once(email: S, reason: R, second: int) -> None:
    assert settle(view(email, S.STANDBY, second)) == text_queued(reason)


def test_an_email_that_ran_out_of_time_unsent_sends_the_text_in_the_same_breath() -> None:
    early = view(S.QUEUED, S.STANDBY, 100)
    early = replace(early, email=replace(early.email, stop_at=at(100)))
    assert settle(early) == (
        Decision(EMAIL, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),
        Decision(SMS, S.QUEUED, R.FALLBACK_EMAIL_EXPIRED),
    )


# --- at the fallback time


@pytest.mark.parametrize("email", [S.QUEUED, S.CLAIMED])
def test_an_unsent_email_makes_way_at_the_fallback_time(email: S) -> None:
    makes_way = (
        Decision(EMAIL, S.STANDBY, R.FALLBACK_GOES_FIRST),
        Decision(SMS, S.QUEUED, R.FALLBACK_EMAIL_NOT_SENT),
    )
    assert settle(view(email, S.STANDBY, FALLBACK - 1)) == NOTHING
    assert settle(view(email, S.STANDBY, FALLBACK)) == makes_way
    assert settle(view(email, S.STANDBY, FALLBACK + 1)) == makes_way


def test_an_open_call_is_waited_for_until_its_own_deadline() -> None:
    open_call = {"email_call_deadline": at(310)}
    seconds = (FALLBACK - 1, FALLBACK, 309, 310, 311)
    found = [settle(view(S.ATTEMPTED, S.STANDBY, each, more=open_call)) for each in seconds]
    sent = text_queued(R.FALLBACK_EMAIL_UNKNOWN)
    assert found == [NOTHING, NOTHING, NOTHING, sent, sent]


def test_a_call_whose_deadline_passed_before_the_fallback_time_still_waits_for_that() -> None:
    open_call = {"email_call_deadline": at(200)}
    assert settle(view(S.ATTEMPTED, S.STANDBY, FALLBACK - 1, more=open_call)) == NOTHING
    assert settle(view(S.ATTEMPTED, S.STANDBY, FALLBACK, more=open_call)) != NOTHING


@pytest.mark.parametrize(
    ("email", "reason"),
    [(S.UNKNOWN, R.FALLBACK_EMAIL_UNKNOWN), (S.ACCEPTED, R.FALLBACK_EMAIL_UNCONFIRMED)],
)
def test_doubt_sends_the_text_at_the_fallback_time(email: S, reason: R) -> None:
    assert settle(view(email, S.STANDBY, FALLBACK - 1)) == NOTHING
    assert settle(view(email, S.STANDBY, FALLBACK)) == text_queued(reason)
    assert settle(view(email, S.STANDBY, SMS_STOP - 1)) == text_queued(reason)


@pytest.mark.parametrize(
    ("email", "holds"),
    [(S.UNKNOWN, {"on_unknown": "hold"}), (S.ACCEPTED, {"on_unconfirmed": "hold"})],
)
def test_a_hold_is_noted_once_and_the_text_stays_in_reserve(
    email: S, holds: dict[str, Any]
) -> None:
    assert settle(view(email, S.STANDBY, FALLBACK - 1, **holds)) == NOTHING
    held = (Note(SMS, R.FALLBACK_HELD),)
    assert settle(view(email, S.STANDBY, FALLBACK, **holds)) == held
    assert settle(view(email, S.STANDBY, FALLBACK + 1, hold_noted=True, **holds)) == NOTHING


def test_a_hold_for_one_doubt_does_not_hold_for_the_other() -> None:
    asked = view(S.ACCEPTED, S.STANDBY, FALLBACK, on_unknown="hold", hold_noted=True)
    assert settle(asked) == text_queued(R.FALLBACK_EMAIL_UNCONFIRMED)


def test_a_bounce_after_a_hold_still_sends_the_text() -> None:
    bounced = view(S.FAILED, S.STANDBY, 400, on_unknown="hold", hold_noted=True)
    assert settle(bounced) == text_queued(R.FALLBACK_EMAIL_FAILED)


# --- the email has arrived


@pytest.mark.parametrize("second", [1, FALLBACK - 1, FALLBACK, SMS_STOP - 1])
def test_a_delivered_email_leaves_the_text_in_reserve(second: int) -> None:
    assert settle(view(S.DELIVERED, S.STANDBY, second)) == NOTHING


@pytest.mark.parametrize("second", [1, FALLBACK, SMS_STOP - 1])
def test_final_acceptance_ends_the_reserve_at_once_where_no_bounce_can_come(second: int) -> None:
    ended = (Decision(SMS, S.SUPPRESSED, R.PRIMARY_ACCEPTED_FINAL),)
    assert settle(view(S.ACCEPTED, S.STANDBY, second, more=FINAL)) == ended


@pytest.mark.parametrize("second", [1, FALLBACK, SMS_STOP - 1])
def test_final_acceptance_keeps_the_reserve_where_bounces_are_taken_in(second: int) -> None:
    kept = view(S.ACCEPTED, S.STANDBY, second, more=FINAL, takes_bounces=True)
    assert settle(kept) == NOTHING


def test_a_relay_whose_acceptance_is_not_final_is_a_doubt_like_another() -> None:
    assert settle(view(S.ACCEPTED, S.STANDBY, FALLBACK - 1)) == NOTHING
    found = settle(view(S.ACCEPTED, S.STANDBY, FALLBACK))
    assert found == text_queued(R.FALLBACK_EMAIL_UNCONFIRMED)


def test_a_queued_text_stands_back_for_a_delivered_email() -> None:
    back = (Decision(SMS, S.STANDBY, R.PRIMARY_DELIVERED),)
    assert settle(view(S.DELIVERED, S.QUEUED, 400)) == back


def test_a_claimed_text_stands_back_at_its_intent_and_not_before() -> None:
    claimed = view(S.DELIVERED, S.CLAIMED, 400)
    assert settle(claimed) == NOTHING
    assert at_intent(claimed) == (Decision(SMS, S.STANDBY, R.PRIMARY_DELIVERED),)


def test_a_text_that_was_attempted_does_not_stand_back() -> None:
    tried = {"sms_ever_attempted": True}
    assert settle(view(S.DELIVERED, S.QUEUED, 400, more=tried)) == NOTHING
    for sms in (S.ATTEMPTED, S.UNKNOWN, S.ACCEPTED, S.DELIVERED):
        assert settle(view(S.DELIVERED, sms, 400, more=tried)) == NOTHING


def test_a_queued_text_is_dropped_for_a_final_acceptance_without_bounces() -> None:
    dropped = (Decision(SMS, S.SUPPRESSED, R.PRIMARY_ACCEPTED_FINAL),)
    assert settle(view(S.ACCEPTED, S.QUEUED, 400, more=FINAL)) == dropped
    assert at_intent(view(S.ACCEPTED, S.CLAIMED, 400, more=FINAL)) == dropped
    back = (Decision(SMS, S.STANDBY, R.PRIMARY_DELIVERED),)
    assert settle(view(S.ACCEPTED, S.QUEUED, 400, more=FINAL, takes_bounces=True)) == back


def test_a_text_put_back_is_taken_again_when_the_email_bounces() -> None:
    assert settle(view(S.FAILED, S.STANDBY, 450)) == text_queued(R.FALLBACK_EMAIL_FAILED)


def test_p6_a_text_that_was_ever_attempted_is_not_taken_again() -> None:
    for email in (S.FAILED, S.UNKNOWN, S.QUEUED):
        tried = view(email, S.STANDBY, 450, more={"sms_ever_attempted": True})
        assert settle(tried) == NOTHING


# --- an email put aside


@pytest.mark.parametrize(
    "sms", [S.QUEUED, S.CLAIMED, S.ATTEMPTED, S.UNKNOWN, S.ACCEPTED, S.DELIVERED]
)
@pytest.mark.parametrize("email", [S.QUEUED, S.CLAIMED])
def test_once_the_text_is_out_an_email_proven_unsent_does_not_start_again(email: S, sms: S) -> None:
    aside = (Decision(EMAIL, S.STANDBY, R.FALLBACK_GOES_FIRST),)
    assert settle(view(email, sms, 400)) == aside


@pytest.mark.parametrize(
    "sms", [S.QUEUED, S.CLAIMED, S.ATTEMPTED, S.UNKNOWN, S.ACCEPTED, S.DELIVERED]
)
def test_an_email_put_aside_waits_while_the_text_is_out(sms: S) -> None:
    assert settle(view(S.STANDBY, sms, 400)) == NOTHING


@pytest.mark.parametrize("sms", [S.FAILED, S.SUPPRESSED, S.EXPIRED])
def test_an_email_put_aside_comes_back_when_the_text_ends_in_time(sms: S) -> None:
    back = (Decision(EMAIL, S.QUEUED, R.TEXT_ENDED_IN_TIME),)
    assert settle(view(S.STANDBY, sms, EMAIL_STOP - 1)) == back
    assert settle(view(S.STANDBY, sms, EMAIL_STOP)) == (
        Decision(EMAIL, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),
    )


def test_a_text_that_never_started_hands_over_at_its_stop_time() -> None:
    assert settle(view(S.STANDBY, S.QUEUED, SMS_STOP - 1)) == NOTHING
    assert settle(view(S.STANDBY, S.QUEUED, SMS_STOP)) == (
        Decision(SMS, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),
        Decision(EMAIL, S.QUEUED, R.TEXT_ENDED_IN_TIME),
    )


@pytest.mark.parametrize("sms", [S.ATTEMPTED, S.UNKNOWN, S.ACCEPTED, S.DELIVERED])
def test_an_email_put_aside_is_superseded_at_its_stop_time_by_a_text_under_way(sms: S) -> None:
    superseded = Decision(EMAIL, S.SUPPRESSED, R.SUPERSEDED_BY_FALLBACK)
    assert settle(view(S.STANDBY, sms, EMAIL_STOP - 1)) == NOTHING
    assert settle(view(S.STANDBY, sms, EMAIL_STOP)) == (superseded,)
    assert settle(view(S.STANDBY, sms, EXPIRY))[0] == superseded


def test_after_an_outage_a_text_that_never_started_supersedes_nothing() -> None:
    assert settle(view(S.STANDBY, S.QUEUED, EMAIL_STOP)) == (
        Decision(EMAIL, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),
        Decision(SMS, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),
    )


# --- a text that cannot help


@pytest.mark.parametrize("email", [S.QUEUED, S.CLAIMED, S.UNKNOWN, S.ACCEPTED, S.FAILED])
def test_p10_a_halted_text_is_not_taken(email: S) -> None:
    halted = {"sms_halted": True}
    for second in (FALLBACK - 1, FALLBACK, SMS_STOP - 1):
        assert settle(view(email, S.STANDBY, second, more=halted)) == NOTHING


@pytest.mark.parametrize("email", [S.QUEUED, S.CLAIMED, S.ATTEMPTED, S.UNKNOWN, S.ACCEPTED])
@pytest.mark.parametrize("sms", [S.SUPPRESSED, S.FAILED, S.EXPIRED])
def test_without_a_text_the_email_goes_on_to_its_own_stop_time(email: S, sms: S) -> None:
    for second in (FALLBACK, SMS_STOP, EMAIL_STOP - 1):
        assert settle(view(email, sms, second)) == NOTHING


# --- endings of the reserve


@pytest.mark.parametrize("second", [SMS_STOP, SMS_STOP + 1, EXPIRY, EXPIRY + 1])
@pytest.mark.parametrize(
    ("email", "more", "reason"),
    [
        (S.DELIVERED, {}, R.PRIMARY_DELIVERED),
        (S.ACCEPTED, FINAL, R.PRIMARY_ACCEPTED_FINAL),
    ],
)
def test_a_reserve_not_needed_is_suppressed_at_its_stop_time(
    email: S, more: dict[str, Any], reason: R, second: int
) -> None:
    waiting = view(email, S.STANDBY, second, more=more, takes_bounces=True)
    assert settle(waiting) == (Decision(SMS, S.SUPPRESSED, reason),)
    assert settle(replace(waiting, now=at(SMS_STOP - 1))) == NOTHING


@pytest.mark.parametrize("email", [S.UNKNOWN, S.ACCEPTED])
def test_a_held_reserve_is_suppressed_by_policy_at_its_stop_time(email: S) -> None:
    hold: dict[str, Any] = {"on_unknown": "hold", "on_unconfirmed": "hold", "hold_noted": True}
    assert settle(view(email, S.STANDBY, SMS_STOP - 1, **hold)) == NOTHING
    assert settle(view(email, S.STANDBY, SMS_STOP, **hold)) == (
        Decision(SMS, S.SUPPRESSED, R.FALLBACK_HELD_BY_POLICY),
    )


@pytest.mark.parametrize("email", [S.FAILED, S.UNKNOWN, S.ACCEPTED, S.ATTEMPTED, S.QUEUED])
def test_a_halted_reserve_expires_at_its_stop_time(email: S) -> None:
    found = settle(view(email, S.STANDBY, SMS_STOP, more={"sms_halted": True}))
    assert found == (Decision(SMS, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),)


# --- expiry


@pytest.mark.parametrize("state", [S.QUEUED, S.CLAIMED])
def test_p5_an_unsent_delivery_ends_at_its_stop_time(state: S) -> None:
    def ending(second: int) -> tuple[Decision, ...]:
        return expiry_decisions(view(state, S.SUPPRESSED, second))

    assert ending(EMAIL_STOP - 1) == ()
    assert ending(EMAIL_STOP) == (Decision(EMAIL, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),)
    assert ending(EXPIRY - 1) == (Decision(EMAIL, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),)
    assert ending(EXPIRY) == (Decision(EMAIL, S.EXPIRED, R.WINDOW_CLOSED),)


@pytest.mark.parametrize("state", [S.QUEUED, S.CLAIMED])
def test_p5_an_unsent_text_ends_at_its_own_stop_time(state: S) -> None:
    assert expiry_decisions(view(S.FAILED, state, SMS_STOP - 1)) == ()
    assert expiry_decisions(view(S.FAILED, state, SMS_STOP)) == (
        Decision(SMS, S.EXPIRED, R.TOO_CLOSE_TO_EXPIRY),
    )


@pytest.mark.parametrize(
    ("state", "reason"),
    [(S.UNKNOWN, R.UNKNOWN_AT_EXPIRY), (S.ACCEPTED, R.UNCONFIRMED_AT_EXPIRY)],
)
def test_what_is_unproven_ends_at_expiry(state: S, reason: R) -> None:
    assert expiry_decisions(view(state, state, EXPIRY - 1)) == ()
    both = (Decision(EMAIL, S.EXPIRED, reason), Decision(SMS, S.EXPIRED, reason))
    assert expiry_decisions(view(state, state, EXPIRY)) == both


def test_a_final_acceptance_and_a_delivery_outlast_expiry() -> None:
    assert expiry_decisions(view(S.ACCEPTED, S.DELIVERED, EXPIRY + 1, more=FINAL)) == ()


def test_an_open_call_is_left_to_its_holder_and_to_rescue() -> None:
    assert expiry_decisions(view(S.ATTEMPTED, S.ATTEMPTED, EXPIRY + 1)) == ()


def test_a_canceled_notice_takes_no_fallback_and_its_unknown_ends_at_expiry() -> None:
    assert settle(view(S.UNKNOWN, S.STANDBY, FALLBACK, canceled=True)) == NOTHING
    assert settle(view(S.UNKNOWN, S.CANCELED, EXPIRY, canceled=True)) == (
        Decision(EMAIL, S.EXPIRED, R.UNKNOWN_AT_EXPIRY),
    )


@pytest.mark.parametrize("email", list(S))
def test_p5_after_expiry_nothing_is_queued(email: S) -> None:
    for sms in S:
        steps = settle(view(email, sms, EXPIRY))
        assert not [
            each for each in steps if isinstance(each, Decision) and each.to_state is S.QUEUED
        ]


@pytest.mark.parametrize("mode", [PolicyMode.PARALLEL, PolicyMode.SMS_ONLY, PolicyMode.EMAIL_ONLY])
def test_other_modes_know_no_fallback(mode: PolicyMode) -> None:
    for email in S:
        for sms in (S.QUEUED, S.CLAIMED, S.ATTEMPTED, S.UNKNOWN, S.ACCEPTED, S.SUPPRESSED):
            assert settle(view(email, sms, FALLBACK, mode=mode)) == NOTHING


# --- was it avoidable?


@pytest.mark.parametrize("second", [400, EXPIRY + 100])
def test_a_fallback_is_noted_as_avoidable_when_the_email_had_arrived_before(second: int) -> None:
    known: dict[str, Any] = {"sms_queued_at": at(300), "email_arrived_at": at(299)}
    late = view(S.DELIVERED, S.DELIVERED, second, **known)
    assert settle(late) == (Note(SMS, R.FALLBACK_WAS_AVOIDABLE),)
    assert settle(replace(late, avoidable_noted=True)) == NOTHING
    assert settle(replace(late, email_arrived_at=at(300))) == NOTHING
    assert settle(replace(late, email_arrived_at=None)) == NOTHING


def test_a_fallback_after_a_bounce_was_not_avoidable() -> None:
    known: dict[str, Any] = {"sms_queued_at": at(300), "email_arrived_at": at(100)}
    assert settle(view(S.FAILED, S.ACCEPTED, 400, **known)) == NOTHING
