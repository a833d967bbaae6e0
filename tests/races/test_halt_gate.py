"""P10: when a halt is acknowledged, every start is committed and listed, and none follows."""

from __future__ import annotations

import threading
from functools import partial

from notifier.flow import halts
from notifier.store.ledger.halts import ENGAGE, GATE_ALONE
from notifier.store.ledger.intent import Verdict
from tests.db.conftest import MakeRig
from tests.db.rig import Rig
from tests.db.waiting import Watch, begin

WORKERS = 4
STARTED = "SELECT reference FROM attempt"


def engage(rig: Rig) -> halts.Acknowledgement:
    return halts.engage(rig.database, scope="all", reason="a drill", by="ops")


def test_p10_engaging_waits_for_an_intent_in_progress_and_lists_it(rig: Rig, watch: Watch) -> None:
    notice_id = rig.admit()
    claim = rig.claim_one()
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM delivery WHERE notice_id = %s FOR UPDATE", [notice_id])
        starting = begin(lambda: rig.intent(claim))
        watch.until_blocked(1)
        engaging = begin(lambda: engage(rig))
        watch.until_blocked(2)
        assert not engaging.done()

    assert starting.result(10).verdict is Verdict.STARTED
    assert [each.reference for each in engaging.result(10).in_flight] == ["ref-1"]


def test_p10_an_intent_that_waited_for_the_gate_sees_the_halt(rig: Rig, watch: Watch) -> None:
    rig.admit()
    claim = rig.claim_one()
    halt = {"halt_id": claim.notice_id, "scope": "all", "reason": "a drill", "by": "ops"}
    with rig.database.connection() as connection, connection.transaction():
        connection.execute(GATE_ALONE)
        starting = begin(lambda: rig.intent(claim))
        watch.until_blocked()
        connection.execute(ENGAGE, halt)

    assert starting.result(10).verdict is Verdict.HALTED
    assert rig.count("attempt") == 0


def test_an_intent_that_waits_for_its_row_does_not_hold_up_a_halt(rig: Rig, watch: Watch) -> None:
    notice_id = rig.admit()
    claim = rig.claim_one()
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [notice_id])
        starting = begin(lambda: rig.intent(claim))
        watch.until_blocked()

        assert [each.state for each in engage(rig).in_flight] == ["claimed"]

    assert starting.result(10).verdict is Verdict.HALTED


def test_p10_no_start_is_ever_missing_from_the_list_and_none_comes_after_it(
    make_rig: MakeRig,
) -> None:
    rigs = [make_rig(size=2) for _ in range(WORKERS)]
    operator = make_rig(size=2)
    for _ in range(6):
        for _ in range(20):
            operator.admit()
        stop, halfway = threading.Event(), threading.Event()
        workers = [
            begin(partial(start_until, rig, f"worker-{n}", stop, halfway))
            for n, rig in enumerate(rigs)
        ]
        assert halfway.wait(10)

        told = engage(operator)
        at_once = {row["reference"] for row in operator.rows(STARTED)}
        stop.set()
        for worker in workers:
            worker.result(10)

        assert {row["reference"] for row in operator.rows(STARTED)} == at_once
        assert {each.reference for each in told.in_flight} - {None} == at_once
        halts.release(operator.database, scope="all", reason="over", by="ops")


def start_until(rig: Rig, owner: str, stop: threading.Event, halfway: threading.Event) -> None:
    """Start whatever can be started, and go on trying past the halt."""
    while not stop.is_set():
        for claim in rig.claim(2, owner=owner):
            rig.intent(claim, f"{claim.event_id}-{claim.fence}", owner=owner)
        if len(rig.rows(STARTED + " LIMIT 8")) == 8:
            halfway.set()
