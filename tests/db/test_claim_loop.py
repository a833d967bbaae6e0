"""What the claim loop takes, and what it leaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from notifier.clock import DatabaseClock
from notifier.domain.states import Channel
from notifier.sweeps.claim_loop import ClaimLoop
from tests.db.ledger.test_dispatch_guards import Line, dispatch_of
from tests.db.rig import BOTH, Rig
from tests.running import until


class Rounds:
    """A bell that nobody rings; it tells how often the loop came to wait for it."""

    def __init__(self) -> None:
        self.waits = 0
        self._never = threading.Event()

    def wait(self, timeout: float) -> None:
        self.waits += 1
        self._never.wait(min(timeout, 0.01))

    def ring_here(self) -> None:
        """It comes by itself soon."""


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


@pytest.fixture
def loop(rig: Rig, rounds: Rounds) -> Iterator[ClaimLoop]:
    clock = DatabaseClock()
    with rig.database.connection() as connection:
        clock.refresh(connection)
    dispatch = dispatch_of(rig, Line(), clock)
    made = ClaimLoop(
        dispatch=dispatch, desk=rig.desk, channels=[Channel.EMAIL], workers=2, bell=rounds
    )
    yield made
    made.stop()


def test_p3_nothing_is_claimed_while_an_outcome_waits_to_be_written(
    rig: Rig, loop: ClaimLoop, rounds: Rounds
) -> None:
    notice_id = rig.admit()
    rig.recorder._add(1)

    loop.start()
    until(lambda: rounds.waits >= 5, 20, "some rounds")
    assert rig.state(notice_id) == "queued"
    rig.recorder._add(-1)

    until(lambda: rig.state(notice_id) == "accepted", 20, "it to go on")


def test_p11_a_channel_that_hangs_leaves_the_other_a_part_of_the_threads(rig: Rig) -> None:
    nobody = Rounds()
    dispatch = dispatch_of(rig, Line(), DatabaseClock())
    loop = ClaimLoop(dispatch=dispatch, desk=rig.desk, channels=BOTH, workers=8, bell=nobody)
    email, sms = Channel.EMAIL, Channel.SMS
    assert (loop._free(email), loop._free(sms)) == (6, 6)

    loop._busy[email] = 6

    assert (loop._free(email), loop._free(sms)) == (0, 2)
