"""P10: an operator stops sending by scope; the answer lists what had started."""

from __future__ import annotations

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import halts, rescue
from notifier.store.ledger.intent import Verdict
from tests.database import Clock
from tests.db.ledger.telling import receipt
from tests.db.rig import Rig

SCOPES = (
    "all",
    "channel:email",
    "provider:smtp",
    "template:password-reset@1",
    "account:the-account",
    "event:the-event",
)


def engage(rig: Rig, scope: str = "all") -> halts.Acknowledgement:
    return halts.engage(rig.database, scope=scope, reason="a drill", by="ops")


def lose_the_worker(rig: Rig, clock: Clock) -> None:
    clock.advance(60)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)


@pytest.mark.parametrize("scope", SCOPES)
def test_p10_each_scope_stops_the_start_and_lists_what_it_covers(rig: Rig, scope: str) -> None:
    rig.admit(account_id="the-account", event_id="the-event")
    claim = rig.claim_one()

    told = engage(rig, scope)

    assert [each.notice_id for each in told.in_flight] == [claim.notice_id]
    assert (told.halt.scope, told.in_effect) == (scope, False)
    assert rig.intent(claim).verdict is Verdict.HALTED


@pytest.mark.parametrize(
    "scope",
    ["channel:sms", "provider:other", "template:password-reset@2", "account:x", "event:x"],
)
def test_a_halt_of_something_else_lists_nothing_and_stops_nothing(rig: Rig, scope: str) -> None:
    rig.admit()
    claim = rig.claim_one()

    assert engage(rig, scope).in_effect
    assert rig.intent(claim).verdict is Verdict.STARTED


def test_p10_a_started_call_is_listed_with_its_reference_until_its_answer(rig: Rig) -> None:
    claim = rig.start_new()

    [flying] = engage(rig).in_flight

    assert (flying.reference, flying.state, flying.lease_owner) == (
        "ref-1",
        "attempted",
        "worker-1",
    )
    rig.record(claim, Accepted("id-1"))
    [standing] = halts.standing(rig.database)
    assert standing.in_effect


def test_p10_a_call_whose_worker_was_lost_is_in_flight_until_somebody_answers(
    rig: Rig, clock: Clock
) -> None:
    """Its worker may only be frozen: its first byte may still come."""
    claim = rig.start_new()
    lose_the_worker(rig, clock)

    [flying] = engage(rig).in_flight

    assert (flying.reference, flying.state, flying.lease_owner) == ("ref-1", "unknown", "worker-1")
    rig.record(claim, Unknown(Reason.TIMEOUT))
    [standing] = halts.standing(rig.database)
    assert standing.in_effect


@pytest.mark.parametrize("status", [ReceiptStatus.ACCEPTED, ReceiptStatus.DELIVERED])
def test_p10_a_call_is_in_flight_beside_what_a_receipt_told_of_the_attempt_before_it(
    rig: Rig, clock: Clock, status: ReceiptStatus
) -> None:
    """The retry's own caller has said nothing yet; after expiry it cannot begin any more."""
    first = rig.start_new()
    rig.record(first, NotAccepted(Detail.PROVIDER_ERROR))
    clock.freeze(rig.delivery(first.notice_id)["due_at"])
    again = rig.start("ref-2")
    rig.tell(receipt(status, "ref-1", provider="smtp"))
    assert rig.state(first.notice_id) == status

    [flying] = engage(rig).in_flight

    assert (flying.reference, flying.lease_owner) == ("ref-2", "worker-1")
    clock.freeze(again.expires_at)
    [standing] = halts.standing(rig.database)
    assert standing.in_effect


def test_p10_such_a_call_is_in_flight_until_its_answer(rig: Rig, clock: Clock) -> None:
    first = rig.start_new()
    rig.record(first, NotAccepted(Detail.PROVIDER_ERROR))
    clock.freeze(rig.delivery(first.notice_id)["due_at"])
    again = rig.start("ref-2")
    rig.tell(receipt(ReceiptStatus.DELIVERED, "ref-1", provider="smtp"))
    rig.record(again, Unknown(Reason.TIMEOUT), "ref-2")

    assert engage(rig).in_effect


def test_a_call_that_ended_unknown_is_not_in_flight(rig: Rig) -> None:
    claim = rig.start_new()
    rig.record(claim, Unknown(Reason.TIMEOUT))

    assert engage(rig).in_effect


def test_a_halt_that_stands_is_kept_as_it_is(rig: Rig) -> None:
    first = engage(rig)

    second = halts.engage(rig.database, scope="all", reason="another", by="somebody")

    assert second.halt == first.halt
    assert len(halts.standing(rig.database)) == 1


def test_a_released_halt_can_be_engaged_anew_and_both_are_kept(rig: Rig) -> None:
    first = engage(rig)
    assert halts.release(rig.database, scope="all", reason="over", by="ops")
    assert not halts.release(rig.database, scope="all", reason="over", by="ops")

    second = engage(rig)

    assert second.halt.halt_id != first.halt.halt_id
    rows = rig.rows("SELECT release_reason FROM halt ORDER BY engaged_at")
    assert [row["release_reason"] for row in rows] == ["over", None]


@pytest.mark.parametrize(
    "scope", ["", "ALL", "channel:fax", "channel:", "provider:", "event:", "all ", "event:a\n"]
)
def test_a_scope_that_would_stop_nothing_is_refused(rig: Rig, scope: str) -> None:
    with pytest.raises(halts.HaltRefused):
        engage(rig, scope)
    assert rig.count("halt") == 0


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, "a\x00b", "call 07700/900/123"])
def test_a_halt_needs_a_reason_that_can_be_read(rig: Rig, reason: str) -> None:
    with pytest.raises(halts.HaltRefused):
        halts.engage(rig.database, scope="all", reason=reason, by="ops")
