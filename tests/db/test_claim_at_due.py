"""A retry is claimed when it falls due, and not with the next poll."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from notifier.clock import DatabaseClock
from notifier.domain.link_faults import LinkFault
from notifier.domain.states import Channel
from notifier.ports.links import LinkAnswer, LinkRequest, LinkUnavailable
from notifier.store.reads.due import next_due_s
from notifier.sweeps import claim_loop
from notifier.sweeps.claim_loop import ClaimLoop
from notifier.sweeps.wakeup import Wakeup
from tests.database import Clock
from tests.db.ledger.test_dispatch_guards import GRANTED, Line, dispatch_of
from tests.db.rig import BOTH, Rig
from tests.db.test_foundation import NOON
from tests.running import until


class Recovering:
    """An auth service that has no link at first, and has one from the second question on."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        assert request.purpose == "send"
        assert budget_s > 0
        self.asked += 1
        return LinkUnavailable(LinkFault.HTTP_503, 503) if self.asked == 1 else GRANTED


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def bell(rig: Rig, line: Line, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wakeup]:
    """What rings a loop that polls once in ten minutes."""
    monkeypatch.setattr(claim_loop, "POLL_S", 600.0)
    clock = DatabaseClock()
    with rig.database.connection() as connection:
        clock.refresh(connection)
    dispatch = replace(dispatch_of(rig, line, clock), links=Recovering())
    rung = Wakeup(rig.database)
    loop = ClaimLoop(
        dispatch=dispatch, desk=rig.desk, channels=[Channel.EMAIL], workers=2, bell=rung
    )
    loop.start()
    yield rung
    loop.stop()


def test_a_retry_that_falls_due_between_two_polls_is_made_then(
    rig: Rig, line: Line, bell: Wakeup
) -> None:
    notice_id = rig.admit()
    bell.ring_here()
    until(lambda: rig.delivery(notice_id)["link_tries"] == 1, 20, "the first question")
    bell.ring_here()  # as whoever queues it does, long before it is due

    until(lambda: len(line.sent) == 1, 20, "the retry")
    until(lambda: rig.state(notice_id) == "accepted", 20, "its outcome")


def test_the_next_due_time_is_that_of_queued_deliveries_to_come(rig: Rig, clock: Clock) -> None:
    began = clock.freeze(NOON)

    def wait_s() -> float | None:
        with rig.database.connection() as connection:
            return next_due_s(connection, BOTH)

    first, second, third = (rig.admit() for _ in range(3))
    assert wait_s() is None
    for notice_id, seconds in ((first, 30), (second, 7.5), (third, -5)):
        due = began + timedelta(seconds=seconds)
        rig.run("UPDATE delivery SET due_at = %s WHERE notice_id = %s", due, notice_id)
    assert wait_s() == 7.5
    clock.advance(7.5)
    assert wait_s() == 22.5
    clock.advance(22.5)
    assert wait_s() is None
