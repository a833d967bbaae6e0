"""Unknown outcomes are looked up and never guessed; what is found is applied as a receipt."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import grimp
import pytest

from notifier.domain.outcome import Accepted
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import expiry
from notifier.ports.asking import Found, Looked, NotFound
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.looking import (
    ASKS,
    FOUND,
    TRUSTING,
    look,
    look_when_due,
    unknown,
)
from tests.db.ledger.telling import Asked, receipt, reconciler, start_new
from tests.db.rig import Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import together

S = ReceiptStatus


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """A process whose policy takes Postmark's word for an absence, twenty seconds after."""
    return make_rig(reports=True, policy=TRUSTING, asks=ASKS)


# --- found


def test_what_is_found_is_applied_as_a_receipt_and_called_reconciled(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked()

    look_when_due(rig, clock, lookup, FOUND)

    assert rig.delivery(claim.notice_id)["reason"] == "reconciled"
    [attempt] = rig.attempts(claim.notice_id)
    assert (attempt["provider_message_id"], attempt["resolved_at"]) == ("pm-1", clock.now())
    [question] = lookup.questions
    assert (question.reference, question.started_at) == ("ref-1", NOON)


def test_p9_a_look_that_somebody_holds_is_skipped_not_waited_for(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim = unknown(rig)
    clock.advance(60)
    lookup = Asked(says=NotFound())
    with rig.database.connection() as connection, connection.transaction():
        connection.execute(
            "SELECT FROM delivery WHERE notice_id = %s FOR UPDATE", [claim.notice_id]
        )
        assert look(rig, lookup) == 0

    assert look(rig, lookup) == 1


def test_two_reconcilers_at_once_ask_once_and_find_once(make_rig: MakeRig, clock: Clock) -> None:
    rigs = [make_rig(reports=True, policy=TRUSTING, asks=ASKS) for _ in range(2)]
    clock.freeze(NOON)
    claims = [unknown(rigs[0], f"ref-{number}") for number in range(6)]
    clock.advance(5)
    lookup = Asked(says=Found([receipt(S.DELIVERED, provider_message_id="pm-1")]))

    looked = together(*(partial(look, rig, lookup) for rig in rigs))

    assert sum(looked) == len(lookup.questions) == 6
    assert len({question.reference for question in lookup.questions}) == 6
    for claim in claims:
        assert rigs[0].reasons(claim.notice_id).count("reconciled") <= 1


def test_one_message_found_twice_is_reconciled_once(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked()
    rig.tell(receipt(S.DELIVERED, provider_message_id="pm-1"), source="look_up")
    rig.run("UPDATE delivery SET next_check_at = db_now() WHERE channel = 'email'")

    look(rig, lookup)
    rig.tell(*FOUND.receipts, source="look_up")

    assert rig.reasons(claim.notice_id).count("reconciled") == 1
    assert rig.count("receipt") == 1


def test_a_look_that_never_came_back_costs_one_look(rig: Rig, clock: Clock) -> None:
    """The process died after it pushed the next look forward."""
    clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked(says=FOUND)
    clock.advance(5)
    asking = reconciler(rig, lookup)
    with rig.database.connection() as connection:
        assert replace(asking, lookups={}).reconcile(connection) == 1
    assert rig.delivery(claim.notice_id)["next_check_at"] == clock.now() + timedelta(seconds=10)
    assert look(rig, lookup) == 0

    clock.advance(10)
    assert look(rig, lookup) == 1
    assert rig.state(claim.notice_id) == "delivered"


def test_one_look_that_breaks_ends_no_other(rig: Rig, clock: Clock) -> None:
    class Breaking(Asked):
        def find(self, question: Any, budget_s: float) -> Looked:
            if question.reference == "ref-1":
                message = "an adapter's own fault"
                raise RuntimeError(message)
            return super().find(question, budget_s)

    clock.freeze(NOON)
    first, second = unknown(rig, "ref-1"), unknown(rig, "ref-2")
    clock.advance(5)

    look(rig, Breaking(says=FOUND))

    assert (rig.state(first.notice_id), rig.state(second.notice_id)) == ("unknown", "delivered")


# --- polling


def poll(rig: Rig, lookup: Asked) -> int:
    with rig.database.connection() as connection:
        return reconciler(rig, lookup).poll(connection)


def test_an_accepted_message_is_asked_about_until_it_expires_and_not_after(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    claim, lookup = start_new(rig), Asked(says=Found([]))
    rig.record(claim, Accepted("pm-1"))
    polls = 0
    while clock.now() < claim.expires_at:
        clock.freeze(rig.delivery(claim.notice_id)["next_check_at"])
        polls += poll(rig, lookup)

    assert polls == len(lookup.polled) == 9
    assert poll(rig, lookup) == 0
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)
    assert rig.delivery(claim.notice_id)["next_check_at"] is None
    clock.advance(600)
    assert (poll(rig, lookup), look(rig, lookup)) == (0, 0)


def test_an_unknown_one_is_not_asked_about_after_it_expired(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim = unknown(rig)
    clock.freeze(claim.expires_at)

    assert look(rig, Asked(says=FOUND)) == 0


def test_what_a_poll_brings_is_applied_like_a_callback(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim = start_new(rig)
    rig.record(claim, Accepted("pm-1"))
    clock.advance(60)
    told = receipt(S.DELIVERED, None, provider_message_id="pm-1")

    poll(rig, Asked(says=Found([told])))
    rig.tell(told)

    assert rig.delivery(claim.notice_id)["reason"] == "receipt"
    assert rig.one("SELECT source FROM receipt") == {"source": "poll"}


# --- P4


@pytest.mark.parametrize("reader", ["receipts", "reconcile"])
def test_p4_what_reads_outcomes_cannot_reach_a_sender_by_any_chain_of_imports(reader: str) -> None:
    graph = grimp.build_graph("notifier", cache_dir=None)
    reachable = graph.find_upstream_modules(f"notifier.flow.{reader}")

    senders = {"notifier.ports.sending", "notifier.flow.dispatch"}
    senders |= graph.find_descendants("notifier.providers")
    assert "notifier.ports.asking" in reachable
    assert not reachable & senders
    assert "notifier.ports.sending" in graph.find_upstream_modules("notifier.flow.dispatch")
