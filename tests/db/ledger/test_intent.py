"""The intent: each guard forbids by itself, and what it commits bounds the call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from notifier.domain.outcome import NotAccepted
from notifier.domain.reasons import Detail
from notifier.flow import cancel, halts
from notifier.store.ledger import pauses
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.intent import Verdict
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import BOTH, BUDGET, Rig, Row
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, begin, together


def test_an_intent_commits_the_attempt_and_extends_the_lease_to_its_deadline(
    rig: Rig, clock: Clock
) -> None:
    now = clock.freeze(NOON)
    notice_id = rig.admit(event_id="evt-x")
    claim = rig.claim_one()

    intent = rig.intent(claim, "ref-x")

    assert (intent.verdict, intent.number) == (Verdict.STARTED, 1)
    assert intent.key == "evt-x:email:first"
    assert intent.deadline == now + BUDGET
    delivery, [attempt] = rig.delivery(notice_id), rig.attempts(notice_id)
    assert (delivery["state"], delivery["may_have_left"]) == ("attempted", True)
    assert delivery["lease_until"] == attempt["deadline"] == intent.deadline
    assert (attempt["reference"], attempt["class"], attempt["fence"]) == ("ref-x", "first", 1)
    assert (attempt["outcome"], attempt["resolved_at"]) == (None, None)
    last = rig.trail(notice_id)[-1]
    assert (last["reason"], last["attempt"]) == ("attempt_started", 1)
    assert (last["provider"], last["provider_ref"]) == ("smtp", "ref-x")


def test_p5_the_calls_deadline_never_reaches_past_the_stop_time(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit()
    claim = rig.claim_one()
    clock.freeze(claim.stop_at - timedelta(seconds=3))

    intent = rig.intent(claim)

    assert intent.deadline == claim.stop_at == rig.delivery(notice_id)["lease_until"]


def test_a_second_attempt_has_a_class_and_a_key_of_its_own(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    rig.admit(event_id="evt-x")
    claim = rig.start("ref-1")
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))
    clock.advance(60)

    again = rig.intent(rig.claim_one(), "ref-2")

    assert (again.verdict, again.number, again.key) == (Verdict.STARTED, 2, "evt-x:email:retry-1")


Break = Callable[[Rig, Claim, Clock], Row]


def nothing(**changes: object) -> Break:
    return lambda _rig, _claim, _clock: dict(changes)


def stop_time_has_come(_rig: Rig, claim: Claim, clock: Clock) -> Row:
    clock.freeze(claim.stop_at)
    return {"not_after": claim.expires_at}


def link_shortened_the_life(_rig: Rig, claim: Claim, clock: Clock) -> Row:
    return {"not_after": clock.now()}


def somebody_canceled(rig: Rig, _claim: Claim, _clock: Clock) -> Row:
    """Between the cancel's own commit and its consequences there is no gap, so one is made."""
    rig.run("UPDATE notice SET canceled_at = db_now(), canceled_reason = 'used'")
    return {}


def halted(rig: Rig, _claim: Claim, _clock: Clock) -> Row:
    halts.engage(rig.database, scope="all", reason="a drill", by="ops")
    return {}


def paused(rig: Rig, _claim: Claim, _clock: Clock) -> Row:
    with rig.database.connection() as connection:
        pauses.pause(connection, provider="smtp", detail="auth_error", seconds=60)
    return {}


def put_back(rig: Rig, _claim: Claim, _clock: Clock) -> Row:
    rig.run(
        "UPDATE delivery SET state = 'queued', lease_owner = NULL, lease_until = NULL"
        " WHERE channel = 'email'"
    )
    return {}


GUARDS: dict[str, tuple[Break, Verdict]] = {
    "fence": (nothing(fence=2), Verdict.FENCED),
    "owner": (nothing(owner="worker-2"), Verdict.FENCED),
    "notice": (nothing(notice_id=uuid4()), Verdict.FENCED),
    "state": (put_back, Verdict.FENCED),
    "stop time": (stop_time_has_come, Verdict.TOO_LATE),
    "not after": (link_shortened_the_life, Verdict.TOO_LATE),
    "cancel": (somebody_canceled, Verdict.CANCELED),
    "halt": (halted, Verdict.HALTED),
    "pause": (paused, Verdict.PAUSED),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_each_guard_alone_forbids_the_start(rig: Rig, clock: Clock, guard: str) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit()
    claim = rig.claim_one()
    spoil, verdict = GUARDS[guard]
    changes = spoil(rig, claim, clock)
    before = rig.delivery(notice_id)

    intent = rig.intent(claim, **changes)

    assert intent.verdict is verdict
    assert rig.attempts(notice_id) == []
    assert rig.delivery(notice_id) == before
    assert rig.notice(notice_id)["seq"] == 4


def test_a_request_that_was_superseded_is_not_started(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    rig.admit(account_id="acc")
    claim = rig.claim_one()
    rig.run(
        "INSERT INTO admission (notice_id, event_id, idempotency_key, reset_request_id,"
        " account_id, requested_at, admitted_at, supersedes, content_digest, expires_at)"
        " VALUES (gen_random_uuid(), 'x', 'x', 'x', 'acc', db_now() + interval '1 s', db_now(),"
        " true, '', db_now())"
    )

    assert rig.intent(claim).verdict is Verdict.SUPERSEDED
    assert rig.attempts(claim.notice_id) == []


def test_p6_an_email_is_not_started_from_the_fallback_time_on(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH)
    clock.freeze(NOON)
    notice_id = rig.admit_for_both()
    claim = rig.claim_one()
    fallback_at = rig.notice(notice_id)["fallback_at"]

    clock.freeze(fallback_at)
    assert rig.intent(claim).verdict is Verdict.FALLBACK_DUE

    clock.freeze(fallback_at - timedelta(microseconds=1))
    assert rig.intent(claim).verdict is Verdict.STARTED


def test_p5_an_intent_that_waited_for_the_row_judges_by_the_time_when_it_goes_on(
    rig: Rig, clock: Clock, watch: Watch
) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit()
    claim = rig.claim_one()
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [notice_id])
        waiting = begin(lambda: rig.intent(claim))
        watch.until_blocked()
        clock.freeze(claim.stop_at)

    assert waiting.result(10).verdict is Verdict.TOO_LATE
    assert rig.attempts(notice_id) == []


def test_an_intent_that_waited_for_the_row_sees_the_pause_that_began_meanwhile(
    rig: Rig, watch: Watch, clock: Clock
) -> None:
    notice_id = rig.admit()
    claim = rig.claim_one()
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [notice_id])
        waiting = begin(lambda: rig.intent(claim))
        watch.until_blocked()
        paused(rig, claim, clock)

    assert waiting.result(10).verdict is Verdict.PAUSED


def test_p1_of_two_intents_for_one_claim_one_starts(rig: Rig) -> None:
    notice_id = rig.admit()
    claim = rig.claim_one()

    verdicts = together(
        lambda: rig.intent(claim, "ref-1").verdict, lambda: rig.intent(claim, "ref-2").verdict
    )

    assert sorted(verdicts) == [Verdict.FENCED, Verdict.STARTED]
    assert len(rig.attempts(notice_id)) == 1


def test_p3_a_second_attempt_is_impossible_while_one_is_unresolved(rig: Rig) -> None:
    notice_id = rig.admit()
    rig.start("ref-1")
    put_back(rig, None, None)  # type: ignore[arg-type]

    again = rig.claim_one()

    with pytest.raises(psycopg.errors.UniqueViolation, match="attempt_one_open"):
        rig.intent(again, "ref-2")
    assert [attempt["reference"] for attempt in rig.attempts(notice_id)] == ["ref-1"]
    assert rig.state(notice_id) == "claimed"


def test_p1_a_reference_and_a_key_are_never_given_twice(rig: Rig) -> None:
    rig.admit()
    rig.admit()
    one, other = rig.claim(2)
    rig.intent(one, "ref-1")

    with pytest.raises(psycopg.errors.UniqueViolation, match="attempt_reference_once"):
        rig.intent(other, "ref-1")

    rig.intent(other, "ref-2")
    with pytest.raises(psycopg.errors.UniqueViolation, match="attempt_key_once"):
        rig.rewrite("attempt", "UPDATE attempt SET key = 'one for both'")


def test_p6_a_cancel_and_an_intent_at_once_never_both_win(rig: Rig) -> None:
    for _ in range(15):
        notice_id = rig.admit()
        claim = rig.claim_one()

        verdict, canceled = together(
            lambda claim=claim: rig.intent(claim, f"ref-{claim.event_id}").verdict,  # type: ignore[misc]
            lambda notice_id=notice_id: cancel.cancel(rig.desk, notice_id, "used"),  # type: ignore[misc]
        )

        if verdict is Verdict.STARTED:
            assert [str(channel) for channel in canceled.may_have_left] == ["email"]
            assert rig.state(notice_id) == "attempted"
        else:
            assert verdict is Verdict.FENCED
            assert rig.state(notice_id) == "canceled"
