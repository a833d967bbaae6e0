"""P5: what has run out of time is ended by the sweep, and is dead without it as well."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel
from notifier.flow import expiry, halts
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import BOTH, Rig
from tests.db.test_foundation import NOON

TICK = timedelta(microseconds=1)


def sweep(rig: Rig) -> int:
    with rig.database.connection() as connection:
        return expiry.expire(rig.desk, connection)


def end_of(rig: Rig, notice_id: UUID) -> tuple[str, str, str]:
    delivery = rig.delivery(notice_id)
    return delivery["state"], delivery["reason"], rig.notice(notice_id)["state"]


def test_an_unsent_delivery_ends_at_its_stop_time_and_not_before(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit()
    stop_at = rig.delivery(notice_id)["stop_at"]

    clock.freeze(stop_at - TICK)
    assert sweep(rig) == 0
    clock.freeze(stop_at)
    assert sweep(rig) == 1

    assert end_of(rig, notice_id) == ("expired", "too_close_to_expiry", "expired")
    assert sweep(rig) == 0


def test_what_no_sweep_saw_until_after_expiry_says_so(rig: Rig, clock: Clock) -> None:
    notice_id = rig.admit()
    clock.advance(601)

    sweep(rig)

    assert end_of(rig, notice_id) == ("expired", "window_closed", "expired")


def test_p3_what_is_unknown_at_expiry_stays_possible(rig: Rig, clock: Clock) -> None:
    claim = rig.start_new()
    rig.record(claim, Unknown(Reason.TIMEOUT))
    clock.freeze(claim.expires_at - TICK)
    assert sweep(rig) == 0

    clock.freeze(claim.expires_at)
    sweep(rig)

    assert end_of(rig, claim.notice_id) == ("expired", "unknown_at_expiry", "expired")
    assert rig.delivery(claim.notice_id)["may_have_left"] is True


def test_what_was_accepted_and_never_confirmed_ends_at_expiry(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(reports=True)
    claim = rig.start_new()
    rig.record(claim, Accepted("id-1"))
    clock.freeze(claim.expires_at)

    sweep(rig)

    assert end_of(rig, claim.notice_id) == ("expired", "unconfirmed_at_expiry", "expired")


def test_final_acceptance_outlives_expiry(rig: Rig, clock: Clock) -> None:
    claim = rig.start_new()
    rig.record(claim, Accepted("id-1"))
    clock.advance(700)

    assert sweep(rig) == 0
    assert end_of(rig, claim.notice_id)[0::2] == ("accepted", "complete")


def test_an_open_call_is_left_to_its_holder(rig: Rig, clock: Clock) -> None:
    claim = rig.start_new()
    clock.freeze(claim.expires_at)

    sweep(rig)
    rig.settle(claim.notice_id)

    assert rig.state(claim.notice_id) == "attempted"


def test_p5_an_outage_past_the_stop_time_leaves_nothing_to_send(rig: Rig, clock: Clock) -> None:
    notices = [rig.admit() for _ in range(5)]
    claim = rig.claim_one()
    rig.intent(claim)
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))
    clock.advance(3600)

    assert rig.claim(10) == []
    while sweep(rig):
        pass

    assert {rig.state(notice_id) for notice_id in notices} == {"expired"}
    assert len(rig.rows("SELECT FROM attempt")) == 1


def test_more_than_a_batch_is_worked_off_batch_by_batch(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notifier.store.reads.due.BATCH", 3)
    for _ in range(7):
        rig.admit()
    clock.advance(601)

    assert [sweep(rig) for _ in range(4)] == [3, 3, 1, 0]


def test_a_text_in_reserve_goes_when_the_email_never_got_out(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH)
    notice_id = rig.admit_for_both()
    clock.freeze(rig.notice(notice_id)["fallback_at"])
    with rig.database.connection() as connection:
        expiry.decide_fallbacks(rig.desk, connection)

    email, text = (rig.delivery(notice_id, channel) for channel in BOTH)

    assert (email["state"], email["reason"]) == ("standby", "fallback_goes_first")
    assert (text["state"], text["reason"]) == ("queued", "fallback_email_not_sent")
    assert rig.notice(notice_id)["fallback_at"] is None
    assert rig.notice(notice_id)["state"] == "text_pending"


def test_p6_notices_that_wait_after_their_fallback_time_hide_no_later_one(
    make_rig: MakeRig, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held by policy, arrived, halted, still calling: none of these has anything to decide."""
    monkeypatch.setattr("notifier.store.reads.due.BATCH", 1)
    rig = make_rig(
        channels=BOTH,
        policy={"on_unknown": "hold", "relay_acceptance": "final"},
        takes_bounces=True,
    )
    outcomes: dict[str, Outcome] = {"held": Unknown(Reason.TIMEOUT), "arrived": Accepted("i")}
    for reference, outcome in outcomes.items():
        rig.admit_for_both()
        rig.record(rig.start(reference), outcome, reference)
    halted = rig.admit_for_both(account_id="halted")
    halts.engage(rig.database, scope="account:halted", reason="a drill", by="ops")
    due = rig.admit_for_both()
    clock.freeze(rig.notice(due)["fallback_at"])

    def decide() -> int:
        with rig.database.connection() as connection:
            return expiry.decide_fallbacks(rig.desk, connection)

    assert [decide() for _ in range(3)] == [1, 1, 0]
    assert rig.state(due, Channel.SMS) == "queued"

    halts.release(rig.database, scope="account:halted", reason="over", by="ops")
    assert [decide() for _ in range(2)] == [1, 0]
    assert rig.state(halted, Channel.SMS) == "queued"
