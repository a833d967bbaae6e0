"""A lease that ran out: a claim goes back, an attempt becomes unknown, and nobody sends twice."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial

import psycopg

from notifier.domain.call_limits import RESCUE_GRACE
from notifier.domain.heartbeat import LOST_AFTER
from notifier.flow import rescue
from notifier.store.ledger.intent import Verdict
from notifier.sweeps.processes import Heartbeat
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import BUDGET, LEASE, Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, begin, together

TICK = timedelta(microseconds=1)


def sweep(rig: Rig) -> int:
    with rig.database.connection() as connection:
        return rescue.rescue(rig.desk, connection)


def hurried_sweep(rig: Rig) -> None:
    """One that may leave a notice to whoever holds it, as it does after a short wait."""
    with suppress(psycopg.errors.LockNotAvailable):
        sweep(rig)


def test_a_claim_whose_lease_ran_out_goes_back_and_its_holder_is_fenced_off(
    rig: Rig, clock: Clock
) -> None:
    now = clock.freeze(NOON)
    notice_id = rig.admit()
    claim = rig.claim_one()

    clock.freeze(now + LEASE + RESCUE_GRACE)
    assert sweep(rig) == 0
    clock.freeze(now + LEASE + RESCUE_GRACE + TICK)
    assert sweep(rig) == 1

    delivery = rig.delivery(notice_id)
    assert (delivery["state"], delivery["reason"]) == ("queued", "lease_expired")
    assert rig.trail(notice_id)[-1]["evidence"] == {"owner": "worker-1"}
    [again] = rig.claim(owner="worker-2")
    assert again.fence == claim.fence + 1
    assert rig.intent(claim).verdict is Verdict.FENCED
    assert rig.intent(again, owner="worker-2").verdict is Verdict.STARTED


def test_p3_a_lease_alone_decides_and_not_how_long_its_process_was_silent(
    rig: Rig, clock: Clock
) -> None:
    now = clock.freeze(NOON)
    rig.admit()
    rig.claim_one()
    heartbeat = Heartbeat("worker-1", workers=1, version="1.0")
    with rig.database.connection() as connection:
        heartbeat.beat(connection)
    assert LOST_AFTER + TICK < LEASE
    clock.freeze(now + LEASE)
    assert sweep(rig) == 0

    clock.freeze(now + LEASE + RESCUE_GRACE + TICK)
    with rig.database.connection() as connection:
        heartbeat.beat(connection)
    assert sweep(rig) == 1


def test_p9_a_worker_that_came_back_to_its_own_old_claim_is_fenced_off_too(
    rig: Rig, clock: Clock
) -> None:
    rig.admit()
    claim = rig.claim_one()
    clock.advance(40)
    sweep(rig)
    rig.claim_one()

    assert rig.intent(claim).verdict is Verdict.FENCED


def test_p3_an_attempt_whose_lease_ran_out_is_unknown_and_stays_so(rig: Rig, clock: Clock) -> None:
    now = clock.freeze(NOON)
    claim = rig.start_new()

    clock.freeze(now + BUDGET + RESCUE_GRACE)
    assert sweep(rig) == 0
    clock.freeze(now + BUDGET + RESCUE_GRACE + TICK)
    assert sweep(rig) == 1

    delivery, [attempt] = rig.delivery(claim.notice_id), rig.attempts(claim.notice_id)
    assert (delivery["state"], delivery["reason"]) == ("unknown", "worker_lost")
    assert (attempt["outcome"], attempt["reason"]) == ("unknown", "worker_lost")
    assert (attempt["resolved_at"], attempt["call_ended"]) == (None, False)
    last = rig.trail(claim.notice_id)[-1]
    assert (last["attempt"], last["provider_ref"]) == (1, "ref-1")
    assert rig.claim(1) == []
    assert sweep(rig) == 0


def test_p9_many_rescuers_at_once_take_each_lease_back_once(
    make_rig: MakeRig, clock: Clock
) -> None:
    rigs = [make_rig(), make_rig(), make_rig()]
    notices = [rigs[0].admit() for _ in range(10)]
    rigs[0].claim(10)
    clock.advance(40)

    together(*(partial(hurried_sweep, rig) for rig in rigs))
    sweep(rigs[0])

    for notice_id in notices:
        assert rigs[0].reasons(notice_id).count("lease_expired") == 1


def test_p9_a_lease_that_was_extended_while_the_sweep_waited_is_left_alone(
    rig: Rig, clock: Clock, watch: Watch
) -> None:
    """As by an intent that came through just before the lease was to be taken back."""
    rig.admit()
    claim = rig.claim_one()
    clock.advance(40)
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [claim.notice_id])
        sweeping = begin(lambda: sweep(rig))
        watch.until_blocked()
        connection.execute("UPDATE delivery SET lease_until = db_now() WHERE channel = 'email'")
    sweeping.result(10)

    assert rig.state(claim.notice_id) == "claimed"
    assert rig.intent(claim).verdict is Verdict.STARTED


def test_a_lease_past_the_stop_time_ends_the_delivery_at_once(rig: Rig, clock: Clock) -> None:
    notice_id = rig.admit(rig.event(life_s=40))
    rig.claim_one()
    clock.advance(35)

    sweep(rig)

    assert rig.delivery(notice_id)["reason"] == "too_close_to_expiry"
    assert rig.reasons(notice_id)[-2:] == ["lease_expired", "too_close_to_expiry"]
    assert rig.notice(notice_id)["state"] == "expired"
