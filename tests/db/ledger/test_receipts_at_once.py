"""Receipts that come together, or meet a lock or a fault: applied once, holding up no other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial

import psycopg
import pytest

from notifier.domain.receipts import ReceiptStatus
from notifier.flow.receipts import Receipts
from notifier.ports.asking import ProviderReceipt
from notifier.store.database import Database
from tests.database import Clock
from tests.db import chain
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import parked, receipt, start_new
from tests.db.rig import Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, begin, together

S = ReceiptStatus


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """One process whose email provider reports deliveries."""
    return make_rig(reports=True)


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
