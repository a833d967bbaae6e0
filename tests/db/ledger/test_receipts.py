"""Receipts in every order: stored once, applied once, whoever brings them and whenever."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import expiry
from notifier.flow.receipts import Receipts
from notifier.ports.asking import ProviderReceipt
from notifier.store.database import Database
from notifier.store.ledger.claim import Claim
from notifier.store.reads.notice import load_notice
from tests.database import Clock
from tests.db import chain
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, receipt
from tests.db.rig import Rig, Row
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, begin, together

S = ReceiptStatus


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """One process whose email provider reports deliveries."""
    return make_rig(reports=True)


def start_new(rig: Rig, reference: str = "ref-1") -> Claim:
    rig.admit()
    return rig.start(reference, provider=POSTMARK)


def parked(rig: Rig) -> int:
    number: int = rig.one("SELECT count(*) AS n FROM receipt WHERE applied_at IS NULL")["n"]
    return number


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


def test_p12_receipts_from_two_threads_for_many_messages_all_end_as_delivered(
    make_rig: MakeRig, watch: Watch, database_url: str
) -> None:
    """Each thread tells its own half of every story, in an order of its own."""
    rigs = [make_rig(reports=True) for _ in range(2)]
    before, total = watch.deadlocks(), 200
    for number in range(total):
        start_new(rigs[0], f"ref-{number}")
    accepted = [receipt(S.ACCEPTED, f"ref-{number}") for number in range(total)]
    delivered = [receipt(S.DELIVERED, f"ref-{number}") for number in range(total)]

    together(
        partial(tell_each, rigs[0], [*accepted, *delivered[::-1]]),
        partial(tell_each, rigs[1], [*delivered, *accepted[::-1]]),
    )
    while rigs[0].sweep_parked():
        pass

    found = rigs[0].rows("SELECT DISTINCT state FROM delivery WHERE channel = 'email'")
    assert found == [{"state": "delivered"}]
    assert (rigs[0].count("receipt"), parked(rigs[0])) == (2 * total, 0)
    facts = rigs[0].one("SELECT count(*) AS n FROM transition WHERE receipt_id IS NOT NULL")
    assert facts["n"] == 2 * total
    assert watch.deadlocks() == before
    chain.verify_at(database_url)


def tell_each(rig: Rig, receipts: Sequence[ProviderReceipt]) -> None:
    for each in receipts:
        rig.tell(each)


def test_batches_that_name_the_same_things_in_opposite_orders_never_deadlock(
    make_rig: MakeRig, watch: Watch
) -> None:
    rigs = [make_rig(reports=True) for _ in range(2)]
    start_new(rigs[0], "ref-a")
    start_new(rigs[0], "ref-b")
    before = watch.deadlocks()
    for number in range(100):
        batch = [receipt(S.DELAYED, each, provider_code=f"{number}") for each in ("ref-a", "ref-b")]
        together(partial(rigs[0].tell, *batch), partial(rigs[1].tell, *batch[::-1]))
        rigs[0].sweep_parked()

    assert watch.deadlocks() == before
    assert (rigs[0].count("receipt"), parked(rigs[0])) == (200, 0)


def test_a_storm_on_locked_notices_is_stored_at_once_and_applied_once_afterwards(
    rig: Rig, watch: Watch
) -> None:
    claim = start_new(rig)
    storm = [receipt(S.DELAYED, provider_code=f"{number}") for number in range(20)]
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [claim.notice_id])
        telling = [begin(partial(tell_each, rig, storm[n::4])) for n in range(4)]
        watch.until_blocked()
        for each in telling:
            each.result(10)
        assert (rig.count("receipt"), parked(rig)) == (20, 20)
        assert len(rig.trail(claim.notice_id)) == 5

    assert [rig.sweep_parked(), rig.sweep_parked()] == [20, 0]
    assert rig.reasons(claim.notice_id).count("fact_receipt") == 20


def test_a_receipt_whose_application_failed_is_applied_when_it_is_told_again_or_by_the_sweep(
    rig: Rig, watch: Watch
) -> None:
    claim = start_new(rig)
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [claim.notice_id])
        rig.tell(receipt(S.DELIVERED))
    assert (rig.state(claim.notice_id), parked(rig)) == ("attempted", 1)

    rig.tell(receipt(S.DELIVERED))
    rig.sweep_parked()
    rig.tell(receipt(S.DELIVERED))

    assert rig.state(claim.notice_id) == "delivered"
    assert rig.reasons(claim.notice_id).count("receipt") == 1


def test_p12_a_receipt_that_two_sweeps_apply_at_once_is_one_fact(rig: Rig, watch: Watch) -> None:
    claim = start_new(rig)
    rig.tell(receipt(S.DELAYED, None, provider_message_id="pm-1"))
    rig.run("UPDATE attempt SET provider_message_id = 'pm-1'")
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [claim.notice_id])
        sweeps = [begin(rig.sweep_parked) for _ in range(2)]
        watch.until_blocked(2)
    for each in sweeps:
        each.result(10)

    assert rig.reasons(claim.notice_id).count("fact_receipt") == 1


def test_what_cannot_be_stored_is_not_half_stored(rig: Rig, database_url: str) -> None:
    """The provider hears a fault and tells it all again."""
    claim = start_new(rig)
    told = [receipt(S.DELAYED), receipt(S.DELIVERED)]
    with closing(Database(database_url, size=1, search_path="pg_catalog")) as elsewhere:
        failing = Receipts(elsewhere, rig.desk, lambda _provider, _status: None)
        with pytest.raises(psycopg.errors.UndefinedTable):
            failing.take(told, "callback")
    assert rig.count("receipt") == 0

    rig.tell(*told)
    assert rig.state(claim.notice_id) == "delivered"


def test_one_receipt_that_cannot_be_applied_holds_up_no_other(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notifier.flow.receipts.BATCH", 2)
    clock.freeze(NOON)
    held, free = start_new(rig, "ref-1"), start_new(rig, "ref-2")
    for reference in ("ref-1", "ref-2"):
        rig.tell(receipt(S.DELIVERED, None, provider_message_id=f"id-of-{reference}"))
        clock.advance(1)
    rig.run("UPDATE attempt SET provider_message_id = 'id-of-' || reference")
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [held.notice_id])
        with rig.database.connection() as sweeping:
            sweeping.execute("SET lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                rig.receipts.apply_parked(sweeping)

        assert rig.state(free.notice_id) == "delivered"
    rig.sweep_parked()
    assert rig.state(held.notice_id) == "delivered"


def current(rig: Rig, claim: Claim) -> Row:
    """What the notice page reads of the email's present."""
    with rig.database.connection() as connection:
        page = load_notice(connection, claim.notice_id)
    assert page is not None
    email = next(each for each in page.deliveries if each.channel == "email")
    return {"state": email.state, "reason": email.reason, "detail": email.detail}


def test_delivered_after_a_soft_bounce_shows_no_failure_but_its_history_does(rig: Rig) -> None:
    claim = start_new(rig)
    rig.record(claim, Accepted("pm-1"))
    rig.tell(receipt(S.DELAYED, detail=Detail.MAILBOX_FULL, provider_code="SoftBounce"))
    assert rig.state(claim.notice_id) == "accepted"

    rig.tell(receipt(S.DELIVERED))

    assert current(rig, claim) == {"state": "delivered", "reason": "receipt", "detail": None}
    soft = next(row for row in rig.trail(claim.notice_id) if row["detail"])
    assert (soft["detail"], soft["reason"]) == ("mailbox_full", "fact_receipt")
    assert soft["from_state"] == soft["to_state"] == "accepted"


def test_delivered_after_a_try_that_was_not_accepted_shows_no_failure(
    rig: Rig, clock: Clock
) -> None:
    claim = start_new(rig)
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))
    clock.advance(60)
    claim = rig.start("ref-2", provider=POSTMARK)
    rig.record(claim, Accepted("pm-2"), "ref-2")

    rig.tell(receipt(S.DELIVERED, "ref-2"))

    assert current(rig, claim) == {"state": "delivered", "reason": "receipt", "detail": None}


NO_STATES = (S.DELAYED, S.INFORMATION, S.UNMAPPED)


@pytest.mark.parametrize(
    ("status", "lesser"),
    [
        (S.ACCEPTED, (S.ACCEPTED, *NO_STATES)),
        (S.DELIVERED, (S.ACCEPTED, S.DELIVERED, *NO_STATES)),
        (S.FAILED, (S.ACCEPTED, S.DELIVERED, S.FAILED, *NO_STATES)),
    ],
)
def test_a_state_is_never_taken_back_by_a_lesser_fact(
    rig: Rig, status: S, lesser: tuple[S, ...]
) -> None:
    claim = start_new(rig)
    rig.tell(receipt(status))

    for each in lesser:
        rig.tell(receipt(each, provider_code="again"))

    assert rig.state(claim.notice_id) == status
    facts = [row for row in rig.trail(claim.notice_id) if row["receipt_id"]]
    assert len(facts) == 1 + len(lesser)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (S.FAILED, S.DELIVERED, "contradicting_receipt"),
        (S.DELIVERED, S.FAILED, "bounced_after_delivery"),
    ],
)
def test_what_contradicts_before_expiry_is_written_down(
    rig: Rig, first: S, second: S, reason: str
) -> None:
    claim = start_new(rig)

    rig.tell(receipt(first, detail=Detail.BLOCKED if first is S.FAILED else None))
    rig.tell(receipt(second, provider_code="2"))

    assert rig.state(claim.notice_id) == "failed"
    assert rig.reasons(claim.notice_id)[-1] == reason
    assert rig.notice(claim.notice_id)["state"] == "failed"


@pytest.mark.parametrize("status", [S.DELIVERED, S.FAILED])
def test_after_expiry_and_without_its_contact_a_receipt_is_a_fact_only(
    rig: Rig, clock: Clock, status: S
) -> None:
    clock.freeze(NOON)
    claim = start_new(rig)
    rig.record(claim, Accepted("pm-1"))
    clock.advance(601)
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)
    rig.run("DELETE FROM contact")
    before = rig.delivery(claim.notice_id)
    occurred = clock.now() - timedelta(seconds=30)

    rig.tell(receipt(status, None, provider_message_id="pm-1", occurred_at=occurred))

    assert rig.delivery(claim.notice_id) == before
    assert before["state"] == "expired"
    last = rig.trail(claim.notice_id)[-1]
    assert (last["reason"], last["occurred_at"]) == ("late_receipt", occurred)
    assert last["remaining_us"] < 0
    assert parked(rig) == 0


def test_a_hard_failure_after_expiry_contradicts_what_was_delivered_and_changes_nothing(
    rig: Rig, clock: Clock
) -> None:
    claim = start_new(rig)
    rig.tell(receipt(S.DELIVERED))
    clock.advance(601)

    rig.tell(receipt(S.FAILED, detail=Detail.BLOCKED))

    assert rig.state(claim.notice_id) == "delivered"
    assert rig.notice(claim.notice_id)["state"] == "complete"
    assert rig.reasons(claim.notice_id)[-1] == "contradicting_receipt"


def test_p1_a_receipt_for_an_earlier_attempt_stops_the_retry_under_its_holder(
    rig: Rig, clock: Clock
) -> None:
    claim = start_new(rig)
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))
    clock.advance(60)
    again = rig.claim_one(provider=POSTMARK)

    rig.tell(receipt(S.DELIVERED))

    assert rig.intent(again, "ref-2", provider=POSTMARK).verdict == "fenced"
    assert rig.delivery(claim.notice_id)["reason"] == "earlier_attempt_found"
    assert len(rig.attempts(claim.notice_id)) == 1
