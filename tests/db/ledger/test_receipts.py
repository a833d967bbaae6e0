"""Receipts are stored once and applied once; those that nobody knows yet wait for their attempt."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import psycopg
import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import parked, receipt, start_new
from tests.db.rig import Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import together

S = ReceiptStatus


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """One process whose email provider reports deliveries."""
    return make_rig(reports=True)


def test_a_receipt_that_is_told_again_is_stored_and_applied_once(rig: Rig) -> None:
    claim = start_new(rig)
    told = receipt(S.DELIVERED)

    for source in ("callback", "callback", "poll"):
        rig.tell(told, source=source)
    rig.tell(told, told)

    assert rig.count("receipt") == 1
    assert rig.reasons(claim.notice_id).count("receipt") == 1


def test_identities_are_told_apart_by_provider_and_account(rig: Rig) -> None:
    start_new(rig)
    told = receipt(S.DELAYED)

    rig.tell(told, receipt(S.DELAYED, account="server-2", identity=told.identity))
    rig.tell(receipt(S.DELAYED, provider="twilio", identity=told.identity))

    assert rig.count("receipt") == 3


def test_one_receipt_brought_by_many_at_once_has_one_effect(rig: Rig) -> None:
    claim = start_new(rig)
    told = receipt(S.DELIVERED)

    together(*[partial(rig.tell, told)] * 8)
    rig.sweep_parked()

    assert (rig.count("receipt"), parked(rig)) == (1, 0)
    assert rig.reasons(claim.notice_id).count("receipt") == 1


def test_p12_a_receipt_before_our_own_record_stands_and_the_answer_adds_the_id(
    rig: Rig,
) -> None:
    claim = start_new(rig)
    rig.tell(receipt(S.DELIVERED))
    assert rig.state(claim.notice_id) == "delivered"

    rig.record(claim, Accepted("pm-1", "0"))

    assert rig.state(claim.notice_id) == "delivered"
    [attempt] = rig.attempts(claim.notice_id)
    assert (attempt["outcome"], attempt["provider_message_id"]) == ("accepted", "pm-1")
    assert rig.reasons(claim.notice_id)[-1] == "late_outcome"


@pytest.mark.parametrize(
    "answer", [NotAccepted(Detail.UNREACHABLE), Unknown(Reason.TIMEOUT)], ids=str
)
def test_p1_an_attempt_that_a_receipt_resolved_is_not_tried_again_whatever_its_caller_says(
    rig: Rig, clock: Clock, answer: NotAccepted | Unknown
) -> None:
    claim = start_new(rig)
    rig.tell(receipt(S.ACCEPTED))

    rig.record(claim, answer)
    clock.advance(200)

    assert rig.state(claim.notice_id) == "accepted"
    assert rig.claim(1) == []


def test_the_answer_that_teaches_the_providers_id_applies_what_waited_for_it(rig: Rig) -> None:
    claim = start_new(rig)
    rig.tell(receipt(S.DELIVERED, None, provider_message_id="pm-1", occurred_at=rig.now()))
    assert (rig.state(claim.notice_id), parked(rig)) == ("attempted", 1)

    rig.record(claim, Accepted("pm-1"))

    assert (rig.state(claim.notice_id), parked(rig)) == ("delivered", 0)
    rows = rig.trail(claim.notice_id)[-2:]
    assert [row["reason"] for row in rows] == ["provider_accepted", "receipt"]
    written = rig.one("SELECT count(DISTINCT xmin::text) AS n FROM transition WHERE seq > 5")
    assert written["n"] == 1, "answer and receipt are one transaction"


def test_what_waited_for_one_answer_is_applied_in_the_order_in_which_it_occurred(
    rig: Rig, clock: Clock
) -> None:
    now = clock.freeze(NOON)
    claim = start_new(rig)
    later, earlier = now + timedelta(seconds=2), now + timedelta(seconds=1)
    for status, at in ((S.DELIVERED, later), (S.DELAYED, earlier)):
        rig.tell(receipt(status, None, provider_message_id="pm-1", occurred_at=at))

    rig.record(claim, Accepted("pm-1"))

    assert [row["occurred_at"] for row in rig.trail(claim.notice_id)[-2:]] == [earlier, later]


def test_the_sweep_applies_what_waited_for_an_attempt_that_is_known_by_now(rig: Rig) -> None:
    claim = start_new(rig)
    rig.tell(receipt(S.DELIVERED, None, provider_message_id="pm-1"))
    rig.run("UPDATE attempt SET provider_message_id = 'pm-1'")

    assert [rig.sweep_parked(), rig.sweep_parked()] == [1, 0]

    assert (rig.state(claim.notice_id), parked(rig)) == ("delivered", 0)


def test_a_reference_is_believed_only_at_the_provider_that_it_was_given_to(rig: Rig) -> None:
    claim = start_new(rig)

    rig.tell(receipt(S.FAILED, provider="twilio"))

    assert (rig.state(claim.notice_id), rig.sweep_parked(), parked(rig)) == ("attempted", 0, 1)


def test_of_a_hundred_receipts_for_unknown_ids_those_whose_attempt_comes_are_matched(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        rig.tell(receipt(S.DELIVERED, None, provider_message_id=f"pm-{number}"))
    assert parked(rig) == 100

    for number in range(10):
        claim = start_new(rig, f"ref-{number}")
        rig.record(claim, Accepted(f"pm-{number}"), f"ref-{number}")

    assert parked(rig) == 90
    assert rig.sweep_parked() == 0
    found = rig.rows("SELECT DISTINCT state FROM delivery WHERE channel = 'email'")
    assert found == [{"state": "delivered"}]
    assert caplog.records == []


def looked_at(rig: Rig) -> int:
    """How many parked receipts one run of the sweep goes through."""
    before = due_again(rig)
    rig.sweep_parked()
    return before - due_again(rig)


def due_again(rig: Rig) -> int:
    query = "SELECT count(*) AS n FROM receipt WHERE look_at <= db_now() AND applied_at IS NULL"
    return int(rig.one(query)["n"])


def test_receipts_that_nobody_knows_are_looked_at_less_and_less(rig: Rig, clock: Clock) -> None:
    began = clock.freeze(NOON)
    for number in range(120):
        rig.tell(receipt(S.DELIVERED, None, provider_message_id=f"pm-{number}"))
    assert [looked_at(rig), looked_at(rig)] == [120, 0]

    looks = 0
    for second in range(1, 3601):
        clock.freeze(began + timedelta(seconds=second))
        looks += looked_at(rig) if due_again(rig) else 0

    assert 120 * 10 <= looks <= 120 * 14
    rig.record(start_new(rig), Accepted("pm-7"))
    assert (parked(rig), rig.sweep_parked()) == (119, 0)


def test_one_run_passes_over_a_bounded_number_of_strangers(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notifier.store.ledger.receipts.ROUNDS", 3)
    monkeypatch.setattr("notifier.flow.receipts.BATCH", 5)
    for number in range(20):
        rig.tell(receipt(S.DELIVERED, None, provider_message_id=f"pm-{number}"))

    assert [looked_at(rig), looked_at(rig)] == [15, 5]


def test_a_batch_that_cannot_be_applied_lets_those_behind_it_have_their_turn(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notifier.flow.receipts.BATCH", 2)
    clock.freeze(NOON)
    held, free = start_new(rig, "ref-1"), start_new(rig, "ref-2")
    for number in range(2):
        rig.tell(receipt(S.DELAYED, None, provider_message_id="of-1", provider_code=f"{number}"))
    rig.tell(receipt(S.DELIVERED, None, provider_message_id="of-2"))
    rig.run("UPDATE attempt SET provider_message_id = 'of-' || right(reference, 1)")
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [held.notice_id])
        with rig.database.connection() as sweeping:
            sweeping.execute("SET lock_timeout = '50ms'")
            for _ in range(2):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    rig.receipts.apply_parked(sweeping)
                clock.advance(1)

    assert rig.state(free.notice_id) == "delivered"
