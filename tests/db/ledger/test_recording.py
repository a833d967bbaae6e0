"""What a call came to is written as a fact about its attempt, whoever holds the lease by then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, ProviderPause, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.flow import cancel, expiry, rescue
from notifier.store.ledger import pauses
from notifier.store.ledger.claim import Claim
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import BUDGET, Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, begin, together


def attempt_of(rig: Rig, claim: Claim) -> dict[str, Any]:
    return rig.attempts(claim.notice_id)[-1]


def lose_the_worker(rig: Rig, clock: Clock) -> None:
    """Let the lease run out and the sweep find it."""
    clock.advance(BUDGET.total_seconds() + 3)
    with rig.database.connection() as connection:
        assert rescue.rescue(rig.desk, connection) == 1


def test_an_accepted_message_completes_a_notice_where_acceptance_is_final(
    rig: Rig, clock: Clock
) -> None:
    now = clock.freeze(NOON)
    claim = rig.start_new()

    rig.record(claim, Accepted("<id-1@mail.example>", "250"))

    delivery, attempt = rig.delivery(claim.notice_id), attempt_of(rig, claim)
    assert (delivery["state"], delivery["final_acceptance"]) == ("accepted", True)
    assert delivery["left_at"] == delivery["arrived_at"] == now
    assert delivery["lease_owner"] is None
    assert (attempt["outcome"], attempt["resolved_at"]) == ("accepted", now)
    assert attempt["provider_message_id"] == "<id-1@mail.example>"
    notice = rig.notice(claim.notice_id)
    assert (notice["state"], notice["basis"]) == ("complete", "accepted")


def test_acceptance_is_not_the_end_where_the_provider_tells_more(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(reports=True)
    claim = rig.start_new()

    rig.record(claim, Accepted("id-1"))

    delivery = rig.delivery(claim.notice_id)
    assert (delivery["final_acceptance"], delivery["arrived_at"]) == (False, None)
    assert rig.notice(claim.notice_id)["state"] == "email_pending"


def test_a_refusal_is_final_and_nothing_has_left(rig: Rig) -> None:
    claim = rig.start_new()

    rig.record(claim, Refused(Detail.INVALID_DESTINATION, "550"))

    delivery = rig.delivery(claim.notice_id)
    assert (delivery["state"], delivery["detail"]) == ("failed", "invalid_destination")
    assert delivery["may_have_left"] is False
    assert rig.notice(claim.notice_id)["state"] == "failed"
    assert rig.trail(claim.notice_id)[-1]["evidence"] == {"code": "550"}


def test_what_was_not_accepted_goes_back_and_waits_its_turn(rig: Rig, clock: Clock) -> None:
    now = clock.freeze(NOON)
    claim = rig.start_new()

    rig.record(claim, NotAccepted(Detail.UNREACHABLE))

    delivery = rig.delivery(claim.notice_id)
    assert (delivery["state"], delivery["reason"]) == ("queued", "not_accepted")
    assert timedelta(seconds=27) <= delivery["due_at"] - now <= timedelta(seconds=33)
    assert attempt_of(rig, claim)["resolved_at"] == now
    assert rig.claim(1) == []


def test_p5_what_was_not_accepted_without_time_for_another_try_has_failed(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    claim = rig.start_new()
    clock.freeze(claim.stop_at - timedelta(seconds=26))

    rig.record(claim, NotAccepted(Detail.UNREACHABLE))

    assert rig.delivery(claim.notice_id)["reason"] == "not_accepted_no_time_left"


@pytest.mark.parametrize(
    "reason",
    [
        Reason.TIMEOUT,
        Reason.CONNECTION_LOST,
        Reason.GATEWAY_ERROR,
        Reason.UNREADABLE_ANSWER,
    ],
)
def test_p3_a_timeout_is_unknown_and_its_attempt_stays_open(rig: Rig, reason: Reason) -> None:
    claim = rig.start_new()

    rig.record(claim, Unknown(reason))  # type: ignore[arg-type]

    delivery, attempt = rig.delivery(claim.notice_id), attempt_of(rig, claim)
    assert (delivery["state"], delivery["reason"]) == ("unknown", reason)
    assert delivery["may_have_left"] is True
    assert (attempt["outcome"], attempt["resolved_at"]) == ("unknown", None)
    assert attempt["call_ended"] is True
    assert rig.claim(1) == []


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Accepted("id-1"), "accepted"),
        (Refused(Detail.BLOCKED), "failed"),
        (NotAccepted(Detail.UNREACHABLE), "queued"),
        (Unknown(Reason.TIMEOUT), "unknown"),
    ],
    ids=["accepted", "refused", "not accepted", "unknown"],
)
def test_p3_a_late_answer_is_taken_whoever_was_told_what_meanwhile(
    rig: Rig, clock: Clock, outcome: Any, state: str
) -> None:
    claim = rig.start_new()
    lose_the_worker(rig, clock)
    assert rig.state(claim.notice_id) == "unknown"

    rig.record(claim, outcome)

    assert rig.state(claim.notice_id) == state
    assert attempt_of(rig, claim)["call_ended"] is True


def test_an_answer_after_expiry_is_a_fact_and_moves_nothing(rig: Rig, clock: Clock) -> None:
    claim = rig.start_new()
    rig.record(claim, Unknown(Reason.TIMEOUT))
    clock.advance(700)
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)

    rig.record(claim, Accepted("id-1"))

    assert rig.delivery(claim.notice_id)["reason"] == "unknown_at_expiry"
    assert rig.reasons(claim.notice_id)[-1] == "late_outcome"
    assert attempt_of(rig, claim)["provider_message_id"] == "id-1"


def test_p3_no_sweep_between_expiry_and_the_answer_makes_a_difference(
    rig: Rig, clock: Clock
) -> None:
    claim = rig.start_new()
    rig.record(claim, Unknown(Reason.TIMEOUT))
    clock.advance(700)

    rig.record(claim, NotAccepted(Detail.UNREACHABLE))

    assert rig.delivery(claim.notice_id)["reason"] == "unknown_at_expiry"


def test_the_holders_own_answer_ends_its_attempt_after_expiry_too(rig: Rig, clock: Clock) -> None:
    claim = rig.start_new()
    clock.advance(700)

    rig.record(claim, Accepted("id-1"))

    assert rig.state(claim.notice_id) == "accepted"
    assert rig.notice(claim.notice_id)["state"] == "complete"


def test_an_answer_that_is_written_twice_changes_nothing_the_second_time(rig: Rig) -> None:
    claim = rig.start_new()
    rig.record(claim, Accepted("id-1"))
    before = rig.delivery(claim.notice_id)

    rig.record(claim, NotAccepted(Detail.UNREACHABLE))

    after = rig.delivery(claim.notice_id)
    assert after == before
    assert rig.reasons(claim.notice_id)[-1] == "late_outcome"


def test_p6_what_was_not_accepted_after_a_cancel_is_canceled(rig: Rig) -> None:
    claim = rig.start_new()
    cancel.cancel(rig.desk, claim.notice_id, "used")
    assert rig.state(claim.notice_id) == "attempted"

    rig.record(claim, NotAccepted(Detail.UNREACHABLE))

    delivery = rig.delivery(claim.notice_id)
    assert (delivery["state"], delivery["may_have_left"]) == ("canceled", False)
    assert delivery["reason"] == "canceled_before_retry"


def test_an_attempt_that_was_never_committed_has_nothing_to_record(rig: Rig) -> None:
    rig.admit()
    claim = rig.claim_one()

    rig.record(claim, NotAccepted(Detail.TIMEOUT), "ref-never-seen")

    assert rig.state(claim.notice_id) == "claimed"
    assert len(rig.trail(claim.notice_id)) == 4


def test_trouble_that_is_about_us_pauses_the_provider_for_all(rig: Rig, clock: Clock) -> None:
    claim = rig.start_new()
    rig.admit()

    rig.record(
        claim,
        NotAccepted(Detail.AUTH_ERROR, "535", ProviderPause(Detail.AUTH_ERROR, seconds=90)),
    )

    assert rig.claim(5) == []
    clock.advance(89)
    assert rig.claim(5) == []
    clock.advance(11)  # the wait that was asked for, and the most that jitter adds
    assert len(rig.claim(5)) == 1, "one tries it"


def test_an_answer_never_rewrites_what_is_known_of_its_attempt(rig: Rig) -> None:
    claim = rig.start_new()
    rig.record(claim, Accepted("id-1", "250"))
    known = attempt_of(rig, claim)

    rig.record(claim, Unknown(Reason.TIMEOUT))

    assert attempt_of(rig, claim) == known
    assert known["outcome"] == "accepted"


def test_a_pause_is_never_shortened_by_a_later_one(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    with rig.database.connection() as connection:
        for seconds in (3600.0, 30.0):
            pauses.pause(connection, provider="smtp", detail="rate_limited", seconds=seconds)
        (pause,) = pauses.standing(connection)

    assert (pause.until - NOON, pause.times) == (timedelta(hours=1), 2)


def test_p3_the_outcome_is_kept_until_the_store_takes_it(rig: Rig, watch: Watch) -> None:
    claim = rig.start_new()
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SET LOCAL lock_timeout = 0")
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [claim.notice_id])
        writing = begin(lambda: rig.record(claim, Accepted("id-1")))
        for _ in range(3):
            watch.until_blocked()
            watch.kill_who_waits()
        watch.until_blocked()
        assert rig.recorder.waiting == 1
        assert not writing.done()
    writing.result(10)

    assert rig.recorder.waiting == 0
    assert rig.state(claim.notice_id) == "accepted"
    assert rig.reasons(claim.notice_id).count("provider_accepted") == 1


def test_p3_an_outcome_that_is_given_up_is_left_to_the_lease(
    rig: Rig, watch: Watch, clock: Clock
) -> None:
    claim = rig.start_new()
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [claim.notice_id])
        writing = begin(lambda: rig.record(claim, Accepted("id-1")))
        watch.until_blocked()
        rig.give_up.set()
        watch.kill_who_waits()
        writing.result(10)
    assert rig.state(claim.notice_id) == "attempted"

    lose_the_worker(rig, clock)
    assert rig.delivery(claim.notice_id)["reason"] == "worker_lost"


def test_p9_answer_and_rescue_at_once_end_in_the_answer(rig: Rig, clock: Clock) -> None:
    for number in range(10):
        claim = rig.start_new(f"ref-{number}")
        clock.advance(BUDGET.total_seconds() + 3)

        def lose() -> None:
            with rig.database.connection() as connection:
                rescue.rescue(rig.desk, connection)

        together(lambda claim=claim, n=number: rig.record(claim, Accepted(), f"ref-{n}"), lose)  # type: ignore[misc]

        assert rig.state(claim.notice_id) == "accepted"
