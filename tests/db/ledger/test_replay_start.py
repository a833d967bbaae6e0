"""A replay is a start: it is marked once, claimed by one, and each guard forbids by itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest

from notifier.domain.event import PolicyMode
from notifier.domain.outcome import Accepted, NotAccepted, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.flow import cancel, expiry, halts, rescue
from notifier.flow.desk import Asks
from notifier.ports.asking import Capability
from notifier.store.ledger import pauses
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.replay import ReplayVerdict
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.replaying import (
    ASKS,
    KEY_LIFETIME,
    RESEND,
    authorise,
    claim_marked,
    is_needed,
    look,
    marked,
    replaying,
    start,
    unknown,
)
from tests.db.ledger.telling import TWILIO, Asked, receipt, reconciler
from tests.db.rig import BOTH, BUDGET, LEASE, Rig, Row
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, begin

V = ReplayVerdict


@pytest.fixture
def rig(make_rig: MakeRig, clock: Clock) -> Rig:
    """A process with both channels whose email provider knows a key again."""
    clock.freeze(NOON)
    return make_rig(channels=BOTH, reports=True, asks=ASKS)


# --- the mark


def test_p3_an_unknown_call_is_marked_once_and_stays_unknown(rig: Rig, clock: Clock) -> None:
    claim = unknown(rig)

    for _ in range(3):
        clock.freeze(rig.delivery(claim.notice_id)["next_check_at"])
        assert look(rig) == 1

    delivery, [attempt] = rig.delivery(claim.notice_id), rig.attempts(claim.notice_id)
    assert (delivery["state"], delivery["fence"]) == ("unknown", claim.fence)
    assert delivery["replay_due_at"] == attempt["replay_authorised_at"]
    assert rig.reasons(claim.notice_id).count("replay_authorised") == 1
    assert attempt["replay_started_at"] is None


def test_p4_what_authorises_starts_nothing_where_nobody_claims(rig: Rig) -> None:
    claim = unknown(rig)
    authorise(rig)

    assert rig.state(claim.notice_id) == "unknown"
    assert rig.reasons(claim.notice_id)[-1] == "replay_authorised"


def after_a_cancel(rig: Rig, claim: Claim, _clock: Clock) -> None:
    cancel.cancel(rig.desk, claim.notice_id, "used")


def after_the_fallback(rig: Rig, claim: Claim, clock: Clock) -> None:
    clock.freeze(rig.notice(claim.notice_id)["fallback_at"])
    with rig.database.connection() as connection:
        expiry.decide_fallbacks(rig.desk, connection)
    assert rig.state(claim.notice_id, Channel.SMS) == "queued"


def after_the_stop_time(_rig: Rig, claim: Claim, clock: Clock) -> None:
    clock.freeze(claim.stop_at)


@pytest.mark.parametrize(
    "when", [after_a_cancel, after_the_fallback, after_the_stop_time], ids=lambda f: f.__name__
)
def test_p6_no_replay_is_authorised_where_none_could_start(
    rig: Rig, clock: Clock, when: Callable[[Rig, Claim, Clock], None]
) -> None:
    claim = unknown(rig)
    when(rig, claim, clock)

    authorise(rig)

    assert rig.delivery(claim.notice_id)["replay_due_at"] is None
    assert "replay_authorised" not in rig.reasons(claim.notice_id)


def test_p12_what_is_known_meanwhile_takes_the_mark_back(rig: Rig) -> None:
    claim = unknown(rig)
    authorise(rig)

    rig.tell(receipt(ReceiptStatus.DELIVERED, provider=RESEND))

    assert rig.delivery(claim.notice_id)["replay_due_at"] is None
    assert claim_marked(rig) == []


# --- the claim


def test_a_mark_is_claimed_once_with_a_new_fence_and_falls_due_again(
    rig: Rig, clock: Clock
) -> None:
    first = unknown(rig)
    authorise(rig)

    [claim] = claim_marked(rig)

    assert (claim.notice_id, claim.fence) == (first.notice_id, first.fence + 1)
    assert claim.repeats is not None
    assert (claim.repeats.reference, claim.repeats.number) == ("ref-1", 1)
    assert (rig.state(claim.notice_id), claim_marked(rig)) == ("unknown", [])
    clock.advance(LEASE.total_seconds())
    assert [each.fence for each in claim_marked(rig)] == [claim.fence + 1]


def test_p9_a_mark_that_somebody_holds_is_skipped_not_waited_for(rig: Rig) -> None:
    claim = unknown(rig)
    authorise(rig)
    with rig.database.connection() as connection, connection.transaction():
        connection.execute(
            "SELECT FROM delivery WHERE notice_id = %s FOR UPDATE", [claim.notice_id]
        )
        assert claim_marked(rig) == []


def test_marks_are_claimed_up_to_the_slots_with_the_least_validity_first(rig: Rig) -> None:
    late = unknown(rig, "ref-1", expires_at=NOON + timedelta(seconds=900))
    soon = unknown(rig, "ref-2")
    authorise(rig)

    assert [each.notice_id for each in claim_marked(rig, 1)] == [soon.notice_id]
    assert [each.notice_id for each in claim_marked(rig, 1)] == [late.notice_id]


# --- the start


def test_a_replay_goes_on_under_the_same_attempt_key_and_reference(rig: Rig, clock: Clock) -> None:
    claim = marked(rig, event_id="evt-x")
    clock.advance(3)

    begun = start(rig, claim)

    assert (begun.verdict, begun.number, begun.key) == (V.STARTED, 1, "evt-x:email:first")
    assert begun.deadline == clock.now() + BUDGET
    delivery, [attempt] = rig.delivery(claim.notice_id), rig.attempts(claim.notice_id)
    assert (delivery["state"], delivery["reason"]) == ("attempted", "replay_started")
    assert (delivery["lease_owner"], delivery["lease_until"]) == ("worker-1", begun.deadline)
    assert (delivery["replay_due_at"], delivery["next_check_at"]) == (None, None)
    assert (attempt["deadline"], attempt["replay_started_at"]) == (begun.deadline, clock.now())
    assert (attempt["started_at"], attempt["reference"]) == (NOON, "ref-1")
    last = rig.trail(claim.notice_id)[-1]
    assert (last["from_state"], last["to_state"]) == ("unknown", "attempted")
    assert (last["reason"], last["attempt"], last["provider_ref"]) == ("replay_started", 1, "ref-1")


def test_p5_a_replays_deadline_never_reaches_past_the_stop_time(rig: Rig, clock: Clock) -> None:
    claim = marked(rig, mode=PolicyMode.EMAIL_ONLY)
    clock.freeze(claim.stop_at - timedelta(seconds=3))

    assert start(rig, claim).deadline == claim.stop_at


Break = Callable[[Rig, Claim, Clock], Row]


def given(**changes: object) -> Break:
    return lambda _rig, _claim, _clock: dict(changes)


def run(statement: str) -> Break:
    def spoil(rig: Rig, _claim: Claim, _clock: Clock) -> Row:
        rig.run(statement)
        return {}

    return spoil


def stop_time_has_come(rig: Rig, claim: Claim, clock: Clock) -> Row:
    rig.run("UPDATE notice SET fallback_at = NULL")
    clock.freeze(claim.stop_at)
    return {"not_after": claim.expires_at}


def link_shortened_the_life(_rig: Rig, _claim: Claim, clock: Clock) -> Row:
    return {"not_after": clock.now()}


def fallback_time_has_come(rig: Rig, claim: Claim, clock: Clock) -> Row:
    clock.freeze(rig.notice(claim.notice_id)["fallback_at"])
    return {}


def halted(rig: Rig, _claim: Claim, _clock: Clock) -> Row:
    halts.engage(rig.database, scope="provider:resend", reason="a drill", by="ops")
    return {}


def paused(rig: Rig, _claim: Claim, _clock: Clock) -> Row:
    with rig.database.connection() as connection:
        pauses.pause(connection, provider=RESEND, detail="auth_error", seconds=60)
    return {}


def key_grew_old(rig: Rig, _claim: Claim, _clock: Clock) -> Row:
    rig.rewrite("attempt", "UPDATE attempt SET started_at = db_now() - %s", KEY_LIFETIME / 2)
    return {}


def a_later_request(rig: Rig, claim: Claim, _clock: Clock) -> Row:
    rig.run(
        "INSERT INTO admission (notice_id, event_id, idempotency_key, reset_request_id,"
        " account_id, requested_at, admitted_at, supersedes, content_digest, expires_at)"
        " VALUES (gen_random_uuid(), 'x', 'x', 'x', %s, db_now() + interval '1 s', db_now(),"
        " true, '', db_now())",
        claim.account_id,
    )
    return {}


GUARDS: dict[str, tuple[Break, ReplayVerdict]] = {
    "fence": (given(fence=1), V.FENCED),
    "notice": (given(notice_id=uuid4()), V.FENCED),
    "reference": (given(reference="ref-2"), V.FENCED),
    "provider": (given(provider="postmark"), V.FENCED),
    "mark": (run("UPDATE delivery SET replay_due_at = NULL WHERE channel = 'email'"), V.FENCED),
    "state": (run("UPDATE delivery SET state = 'accepted' WHERE channel = 'email'"), V.RESOLVED),
    "resolved": (run("UPDATE attempt SET resolved_at = db_now()"), V.RESOLVED),
    "once": (run("UPDATE attempt SET replay_started_at = db_now()"), V.STARTED_BEFORE),
    "cancel": (run("UPDATE notice SET canceled_at = db_now()"), V.CANCELED),
    "stop time": (stop_time_has_come, V.TOO_LATE),
    "not after": (link_shortened_the_life, V.TOO_LATE),
    "superseded": (a_later_request, V.SUPERSEDED),
    "fallback": (
        run("UPDATE delivery SET requeued_at = db_now(), state = 'queued' WHERE channel = 'sms'"),
        V.FALLBACK_TAKEN,
    ),
    "fallback time": (fallback_time_has_come, V.FALLBACK_TAKEN),
    "halt": (halted, V.HALTED),
    "pause": (paused, V.PAUSED),
    "key": (key_grew_old, V.KEY_TOO_OLD),
    "message": (given(message_digest="01"), V.CHANGED),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_each_guard_alone_forbids_the_replay(rig: Rig, clock: Clock, guard: str) -> None:
    claim = marked(rig)
    spoil, verdict = GUARDS[guard]
    changes = spoil(rig, claim, clock)
    before, attempts = rig.delivery(claim.notice_id), rig.attempts(claim.notice_id)
    seq = rig.notice(claim.notice_id)["seq"]

    assert start(rig, claim, **changes).verdict is verdict

    assert (rig.delivery(claim.notice_id), rig.attempts(claim.notice_id)) == (before, attempts)
    assert rig.notice(claim.notice_id)["seq"] == seq


NOT_CLAIMED = sorted(set(GUARDS) - {"fence", "notice", "reference", "not after", "message"})


@pytest.mark.parametrize("guard", sorted({*NOT_CLAIMED} - {"provider", "once", "superseded"}))
def test_what_could_not_start_is_not_claimed_either(rig: Rig, clock: Clock, guard: str) -> None:
    claim = unknown(rig)
    authorise(rig)
    GUARDS[guard][0](rig, claim, clock)

    assert claim_marked(rig) == []


def test_a_mark_at_another_provider_is_not_claimed(rig: Rig) -> None:
    unknown(rig)
    authorise(rig)

    assert claim_marked(rig, provider="postmark") == []
    assert claim_marked(rig, channel=Channel.SMS) == []


def test_p6_a_text_that_was_queued_and_failed_still_forbids_the_emails_replay(rig: Rig) -> None:
    claim = marked(rig)
    rig.run("UPDATE delivery SET requeued_at = db_now(), state = 'queued' WHERE channel = 'sms'")
    rig.run(
        "UPDATE delivery SET state = 'claimed', lease_owner = 'x', lease_until = db_now()"
        " WHERE channel = 'sms'"
    )
    rig.run(
        "UPDATE delivery SET state = 'failed', lease_owner = NULL, lease_until = NULL"
        " WHERE channel = 'sms'"
    )

    assert start(rig, claim).verdict is V.FALLBACK_TAKEN


def test_where_the_policy_holds_the_text_a_replay_may_start_after_the_fallback_time(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH, reports=True, asks=ASKS, policy={"on_unknown": "hold"})
    first = unknown(rig)
    clock.freeze(rig.notice(first.notice_id)["fallback_at"])
    with rig.database.connection() as connection:
        expiry.decide_fallbacks(rig.desk, connection)
    assert "fallback_held" in rig.reasons(first.notice_id)

    authorise(rig)
    [claim] = claim_marked(rig)

    assert start(rig, claim).verdict is V.STARTED


def test_a_fallback_text_is_not_repeated_once_the_email_has_arrived(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH, reports=True, asks={TWILIO: Asks(can_find=True, can_poll=True)})
    rig.admit(mode=PolicyMode.SMS_ONLY, sms_consent=True)
    text = rig.start("ref-1", Channel.SMS, TWILIO)
    rig.record(text, Unknown(Reason.TIMEOUT))
    rig.run("UPDATE delivery SET next_check_at = db_now() WHERE state = 'unknown'")
    with rig.database.connection() as connection:
        asked = Asked(TWILIO, Channel.SMS, Capability.REPLAY)
        assert reconciler(rig, asked).reconcile(connection) == 1
    [claim] = claim_marked(rig, channel=Channel.SMS, provider=TWILIO)
    rig.rewrite("delivery", "UPDATE delivery SET is_fallback = true WHERE channel = 'sms'")
    rig.run("ALTER TABLE delivery DISABLE TRIGGER USER")
    rig.run("UPDATE delivery SET state = 'delivered' WHERE channel = 'email'")
    rig.run("ALTER TABLE delivery ENABLE TRIGGER USER")

    assert start(rig, claim, provider=TWILIO).verdict is V.NOT_NEEDED


def test_p5_a_replay_that_waited_for_the_row_judges_by_the_time_when_it_goes_on(
    rig: Rig, clock: Clock, watch: Watch
) -> None:
    claim = marked(rig)
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [claim.notice_id])
        waiting = begin(lambda: start(rig, claim))
        watch.until_blocked()
        clock.freeze(claim.stop_at)

    assert waiting.result(10).verdict is V.TOO_LATE


def test_p9_a_worker_whose_mark_was_taken_over_is_fenced_off(rig: Rig, clock: Clock) -> None:
    slow = marked(rig)
    clock.advance(LEASE.total_seconds())
    [quick] = claim_marked(rig)

    assert start(rig, slow).verdict is V.FENCED
    assert start(rig, quick).verdict is V.STARTED


# --- the last look before the call


def test_a_replay_is_needed_until_something_is_known(rig: Rig) -> None:
    claim = replaying(rig)
    assert is_needed(rig, claim)

    rig.tell(receipt(ReceiptStatus.ACCEPTED, provider=RESEND))

    assert not is_needed(rig, claim)


def test_p9_a_replay_whose_lease_was_taken_back_is_not_called_any_more(
    rig: Rig, clock: Clock
) -> None:
    claim = replaying(rig)
    clock.advance(BUDGET.total_seconds())
    assert not is_needed(rig, claim)

    clock.advance(3)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)

    assert not is_needed(rig, claim)
    assert rig.delivery(claim.notice_id)["reason"] == "worker_lost"


def test_p3_a_replay_whose_worker_was_lost_leaves_it_unknown_and_is_not_repeated(
    rig: Rig, clock: Clock
) -> None:
    claim = replaying(rig, mode=PolicyMode.EMAIL_ONLY)
    clock.advance(BUDGET.total_seconds() + 3)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)

    authorise(rig)

    assert rig.state(claim.notice_id) == "unknown"
    assert claim_marked(rig) == []
    assert rig.reasons(claim.notice_id).count("replay_authorised") == 1


# --- halts


def in_flight(rig: Rig) -> list[tuple[str, str | None]]:
    told = halts.engage(rig.database, scope="all", reason="a drill", by="ops")
    return [(each.state, each.reference) for each in told.in_flight]


def test_p10_a_replay_is_in_flight_until_its_own_answer(rig: Rig, clock: Clock) -> None:
    claim = replaying(rig)
    assert in_flight(rig) == [("attempted", "ref-1")]

    clock.advance(BUDGET.total_seconds() + 3)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)
    [standing] = halts.standing(rig.database)
    assert [each.state for each in standing.in_flight] == ["unknown"]

    rig.record(claim, Unknown(Reason.TIMEOUT))
    [standing] = halts.standing(rig.database)
    assert standing.in_effect


def test_p10_a_first_call_that_never_answered_stays_in_flight_after_its_replay_did(
    rig: Rig, clock: Clock
) -> None:
    rig.admit_for_both()
    first = rig.start(provider=RESEND)
    clock.advance(BUDGET.total_seconds() + 3)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)
    authorise(rig)
    [claim] = claim_marked(rig)
    assert start(rig, claim).verdict is V.STARTED
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))

    assert in_flight(rig) == [("unknown", "ref-1")]

    rig.record(first, Accepted("id-1"))
    [standing] = halts.standing(rig.database)
    assert standing.in_effect
