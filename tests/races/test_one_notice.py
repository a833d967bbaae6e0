"""Many hands on one notice: no deadlock, no fork in its chain, no second start."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from uuid import UUID, uuid4

import pytest

from notifier.domain.event import Conflict
from notifier.domain.outcome import Accepted, NotAccepted, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.flow import cancel, expiry, put_back, rescue, tickets
from notifier.store.ledger.claim import Claim
from tests.database import Clock
from tests.db import chain
from tests.db.conftest import MakeRig
from tests.db.rig import BOTH, BUDGET, TRANSPORT, Rig
from tests.db.waiting import Watch, together

ROUNDS = 2
Job = Callable[[Rig, Claim], object]


def reference_of(claim: Claim) -> str:
    return f"{claim.event_id}-first"


def record_accepted(rig: Rig, claim: Claim) -> None:
    rig.record(claim, Accepted("id-1"), reference_of(claim))


def record_not_accepted(rig: Rig, claim: Claim) -> None:
    rig.record(claim, NotAccepted(Detail.UNREACHABLE), reference_of(claim))


def record_unknown(rig: Rig, claim: Claim) -> None:
    rig.record(claim, Unknown(Reason.TIMEOUT), reference_of(claim))


def cancel_it(rig: Rig, claim: Claim) -> None:
    cancel.cancel(rig.desk, claim.notice_id, "used")


def rescue_it(rig: Rig, _claim: Claim) -> None:
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)


def decide_it(rig: Rig, _claim: Claim) -> None:
    with rig.database.connection() as connection:
        expiry.decide_fallbacks(rig.desk, connection)
        expiry.expire(rig.desk, connection)


def claim_it(rig: Rig, _claim: Claim) -> None:
    for channel in BOTH:
        for taken in rig.claim(2, channel=channel):
            rig.intent(taken, str(uuid4()))


def start_again(rig: Rig, claim: Claim) -> None:
    rig.intent(claim, str(uuid4()))


def link_ticket(rig: Rig, claim: Claim) -> None:
    tickets.link(rig.database, rig.desk, ticket_id="T-1", notice_id=claim.notice_id, by="desk")


def post_other_content(rig: Rig, claim: Claim) -> None:
    answer = rig.admission.admit(rig.event(event_id=claim.event_id), TRANSPORT)
    assert answer == Conflict()


def shorten_it(rig: Rig, claim: Claim) -> None:
    put_back.shorten(rig.desk, claim, claim.expires_at)


JOBS: tuple[Job, ...] = (
    record_accepted,
    record_not_accepted,
    record_unknown,
    cancel_it,
    rescue_it,
    decide_it,
    claim_it,
    start_again,
    link_ticket,
    post_other_content,
    shorten_it,
)


def started_long_ago(rig: Rig, clock: Clock) -> Claim:
    """A notice for both channels whose email's call should have ended by now."""
    rig.admit_for_both()
    claim = rig.claim_one()
    rig.intent(claim, reference_of(claim))
    clock.advance(BUDGET.total_seconds() + 5)
    return claim


def never_started_twice(rig: Rig, notice_id: UUID) -> None:
    open_ones = [each for each in rig.attempts(notice_id) if each["resolved_at"] is None]
    assert len({each["channel"] for each in open_ones}) == len(open_ones)
    starts = [row for row in rig.trail(notice_id) if row["reason"] == "attempt_started"]
    assert len(starts) == len(rig.attempts(notice_id))


@pytest.mark.parametrize("first", JOBS, ids=lambda job: job.__name__)
def test_p9_any_two_flows_at_once_neither_deadlock_nor_fork_the_chain(
    make_rig: MakeRig, clock: Clock, watch: Watch, database_url: str, first: Job
) -> None:
    rigs = [make_rig(channels=BOTH, size=4), make_rig(channels=BOTH, size=4)]
    before = watch.deadlocks()
    for _, second in itertools.product(range(ROUNDS), JOBS):
        claim = started_long_ago(rigs[0], clock)
        together(partial(first, rigs[0], claim), partial(second, rigs[1], claim))
        never_started_twice(rigs[0], claim.notice_id)
        cancel_it(rigs[0], claim)

    assert chain.verify_at(database_url) == rigs[0].count("transition")
    assert watch.deadlocks() == before


def test_p8_ten_writers_on_one_notice_leave_one_chain(
    make_rig: MakeRig, clock: Clock, watch: Watch, database_url: str
) -> None:
    rigs = [make_rig(channels=BOTH, size=4) for _ in range(3)]
    before = watch.deadlocks()
    for _ in range(10):
        claim = started_long_ago(rigs[0], clock)
        together(*(partial(job, rigs[n % 3], claim) for n, job in enumerate(JOBS)))
        never_started_twice(rigs[0], claim.notice_id)
        cancel_it(rigs[0], claim)

    assert chain.verify_at(database_url) == rigs[0].count("transition")
    assert watch.deadlocks() == before


def test_p1_crosswise_admissions_neither_deadlock_nor_make_two(
    make_rig: MakeRig, watch: Watch
) -> None:
    """Keys that two events share crosswise, so that each waits for the other's."""
    rigs = [make_rig(size=8), make_rig(size=8)]
    before = watch.deadlocks()
    for number in range(10):
        keys = {name: f"{name}-{number}" for name in ("a", "b", "c")}
        events = [
            rigs[0].event(event_id=one, idempotency_key=two, reset_request_id=three)
            for one, two, three in itertools.permutations(keys.values())
        ]
        answers = together(
            *(
                partial(rigs[n % 2].admission.admit, event, TRANSPORT)
                for n, event in enumerate(events)
            )
        )
        assert all(answer == Conflict() or not answer.replayed for answer in answers)

    assert watch.deadlocks() == before


def test_b093_sweeps_over_many_notices_from_both_ends_never_deadlock(
    make_rig: MakeRig, clock: Clock, watch: Watch, database_url: str
) -> None:
    rigs = [make_rig(channels=BOTH, size=4) for _ in range(2)]
    before = watch.deadlocks()
    notices = [rigs[0].admit_for_both() for _ in range(30)]
    rigs[0].claim(30)
    clock.advance(60)

    def settle_all(rig: Rig, order: list[UUID]) -> None:
        for notice_id in order:
            rig.settle(notice_id)

    def rescue_all(rig: Rig) -> None:
        with rig.database.connection() as connection:
            rescue.rescue(rig.desk, connection)

    together(
        lambda: settle_all(rigs[0], notices),
        lambda: settle_all(rigs[1], notices[::-1]),
        lambda: rescue_all(rigs[0]),
        lambda: rescue_all(rigs[1]),
        lambda: rigs[0].claim(30),
        lambda: rigs[1].claim(30, owner="worker-2"),
    )

    assert chain.verify_at(database_url) == rigs[0].count("transition")
    assert watch.deadlocks() == before
