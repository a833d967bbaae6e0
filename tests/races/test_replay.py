"""A replay against everything that may happen at the same moment: at most one of the two wins."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

import pytest

from notifier.domain.outcome import Accepted, NotAccepted
from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.flow import cancel, expiry, halts
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.replay import ReplayVerdict
from tests.database import Clock
from tests.db import chain
from tests.db.conftest import MakeRig
from tests.db.ledger.replaying import (
    ASKS,
    RESEND,
    authorise,
    claim_marked,
    is_needed,
    marked,
    start,
    unknown,
)
from tests.db.ledger.telling import receipt
from tests.db.rig import BOTH, BUDGET, Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, together

ROUNDS = 8
V = ReplayVerdict


@pytest.fixture
def rigs(make_rig: MakeRig, clock: Clock) -> list[Rig]:
    """Two processes that send through a provider that knows a key again."""
    clock.freeze(NOON)
    return [make_rig(channels=BOTH, reports=True, asks=ASKS, size=4) for _ in range(2)]


def starts(rig: Rig, notice_id: UUID) -> int:
    return rig.reasons(notice_id).count("replay_started")


def close(rig: Rig, claim: Claim) -> None:
    """Leave nothing behind that a later round would claim."""
    cancel.cancel(rig.desk, claim.notice_id, "used")


def unknown_and_marked(rig: Rig, number: int) -> Claim:
    return marked(rig, reference=f"ref-{number}")


def test_p9_of_two_dispatchers_one_gets_a_mark(rigs: list[Rig]) -> None:
    for number in range(ROUNDS):
        first = unknown(rigs[0], f"ref-{number}")
        authorise(rigs[0])

        taken = together(partial(claim_marked, rigs[0]), partial(claim_marked, rigs[1]))

        assert sorted(len(each) for each in taken) == [0, 1]
        close(rigs[0], first)


def test_p3_of_two_starts_for_one_mark_one_calls(rigs: list[Rig]) -> None:
    for number in range(ROUNDS):
        claim = unknown_and_marked(rigs[0], number)

        told = together(partial(start, rigs[0], claim), partial(start, rigs[1], claim))

        assert sorted(each.verdict for each in told) == [V.RESOLVED, V.STARTED]
        assert starts(rigs[0], claim.notice_id) == 1
        close(rigs[0], claim)


def test_p6_a_replay_and_the_fallback_never_both_begin(rigs: list[Rig], clock: Clock) -> None:
    for number in range(ROUNDS):
        clock.freeze(NOON)
        claim = unknown_and_marked(rigs[0], number)
        fallback_at: datetime = rigs[0].notice(claim.notice_id)["fallback_at"]
        # Closer to the fallback than a call takes: one that began then is still under way.
        clock.freeze(fallback_at - BUDGET / 2)

        def decide(at: datetime = fallback_at) -> None:
            clock.freeze(at)
            with rigs[1].database.connection() as connection:
                expiry.decide_fallbacks(rigs[1].desk, connection)

        begun, _ = together(partial(start, rigs[0], claim), decide)

        queued = rigs[0].state(claim.notice_id, Channel.SMS) == "queued"
        assert queued is (begun.verdict is not V.STARTED)
        close(rigs[0], claim)


def test_p12_a_replay_and_a_receipt_at_once_end_as_the_receipt_says(
    rigs: list[Rig], database_url: str, watch: Watch
) -> None:
    before = watch.deadlocks()
    for number in range(ROUNDS):
        claim = unknown_and_marked(rigs[0], number)
        told = receipt(ReceiptStatus.DELIVERED, f"ref-{number}", provider=RESEND)

        begun, _ = together(partial(start, rigs[0], claim), partial(rigs[1].tell, told))

        rigs[1].sweep_parked()
        assert rigs[0].state(claim.notice_id) == "delivered"
        assert not is_needed(rigs[0], claim)
        if begun.verdict is V.STARTED:
            rigs[0].record(claim, NotAccepted(Detail.CANCELLED), f"ref-{number}")
        assert rigs[0].state(claim.notice_id) == "delivered"
    assert chain.verify_at(database_url) == rigs[0].count("transition")
    assert watch.deadlocks() == before


def test_p6_a_cancel_and_a_replay_at_once_are_told_apart(rigs: list[Rig]) -> None:
    for number in range(ROUNDS):
        claim = unknown_and_marked(rigs[0], number)

        begun, canceled = together(
            partial(start, rigs[0], claim),
            partial(cancel.cancel, rigs[1].desk, claim.notice_id, "used"),
        )

        assert [str(each) for each in canceled.may_have_left] == ["email"]
        wanted = "attempted" if begun.verdict is V.STARTED else "unknown"
        assert rigs[0].state(claim.notice_id) == wanted
        assert begun.verdict in (V.STARTED, V.CANCELED)


def test_p10_a_replay_that_started_is_on_the_halts_list_and_none_comes_after_it(
    rigs: list[Rig],
) -> None:
    for number in range(ROUNDS):
        claim = unknown_and_marked(rigs[0], number)
        engage = partial(halts.engage, rigs[1].database, scope="all", reason="a drill", by="ops")

        begun, acknowledged = together(partial(start, rigs[0], claim), engage)

        listed = [each.reference for each in acknowledged.in_flight]
        assert listed == ([f"ref-{number}"] if begun.verdict is V.STARTED else [])
        assert begun.verdict in (V.STARTED, V.HALTED)
        halts.release(rigs[1].database, scope="all", reason="over", by="ops")
        rigs[0].record(claim, Accepted(f"id-{number}"), f"ref-{number}")
        close(rigs[0], claim)


def test_p12_both_calls_answers_at_once_are_one_acceptance(
    rigs: list[Rig], database_url: str, watch: Watch
) -> None:
    before = watch.deadlocks()
    for number in range(ROUNDS):
        first = unknown(rigs[0], f"ref-{number}")
        authorise(rigs[0])
        [claim] = claim_marked(rigs[0])
        assert start(rigs[0], claim).verdict is V.STARTED
        answer = Accepted(f"id-{number}")

        together(
            partial(rigs[0].record, first, answer, f"ref-{number}"),
            partial(rigs[1].record, claim, answer, f"ref-{number}"),
        )

        told = rigs[0].reasons(claim.notice_id)
        assert rigs[0].state(claim.notice_id) == "accepted"
        assert told.count("provider_accepted") + told.count("late_answer") == 1
        close(rigs[0], claim)
    assert chain.verify_at(database_url) == rigs[0].count("transition")
    assert watch.deadlocks() == before
