"""The election: at most one process leads at any instant, and somebody soon does."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from notifier.clock import steady
from notifier.store.database import Database
from notifier.sweeps.leader import Leader
from tests.database import Clock
from tests.sweeps.conftest import LeaderThread
from tests.sweeps.waiting import AT_ONCE_S, until

TakePart = Callable[..., LeaderThread]
AnotherDatabase = Callable[[], Database]

KILL_BACKENDS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND backend_type = 'client backend'
"""


def overlap(one: Leader, other: Leader) -> bool:
    """Whether both led at one instant: `one` did before and after `other` was asked."""
    before = one.epoch
    both = before is not None and other.is_leader()
    return both and one.epoch == before


def lease(database: Database) -> dict[str, object]:
    with database.connection() as connection:
        row = connection.execute(
            "SELECT owner, epoch, extract(epoch FROM until - db_now())::float8 AS left FROM leader"
        ).fetchone()
    assert row is not None
    return row


def edit(database: Database, change: str) -> None:
    with database.connection() as connection:
        connection.execute(change)


def test_p9_no_two_processes_lead_at_one_instant_while_connections_die(
    database: Database, another_database: AnotherDatabase, take_part: TakePart
) -> None:
    leaders = [Leader(another_database(), f"p{n}", 0.6, poll=0.05) for n in range(3)]
    for leader in leaders:
        take_part(leader)
    overlaps, looks, done = [], 0, threading.Event()
    seen: set[int | None] = set()

    def kill_at_random() -> None:
        while not done.wait(random.uniform(0.02, 0.4)):
            edit(database, random.choice([KILL_BACKENDS, "UPDATE leader SET epoch = epoch + 1"]))

    killer = threading.Thread(target=kill_at_random)
    killer.start()
    began = time.monotonic()
    # A busy machine elects more slowly: go on until there was something to see.
    while (took := time.monotonic() - began) < 4 or (len(seen) <= 3 and took < 30):
        looks += 1
        seen |= {leader.epoch for leader in leaders} - {None}
        pairs = [(a, b) for a in leaders for b in leaders if a is not b]
        overlaps += [(a.owner, b.owner) for a, b in pairs if overlap(a, b)]
        time.sleep(0.0005)
    done.set()
    killer.join()

    assert overlaps == []
    assert looks > 500
    assert len(seen) > 3


def test_a_clean_stop_hands_over_at_once(
    database: Database, another_database: AnotherDatabase, take_part: TakePart
) -> None:
    first = take_part(Leader(database, "first"))
    until(first.leader.is_leader)
    second = take_part(Leader(another_database(), "second", poll=60.0))
    until(lambda: listening(database))

    first.stop()

    assert until(second.leader.is_leader) < AT_ONCE_S
    assert first.events == ["gain", "loss"]
    assert second.leader.epoch == 2


def listening(database: Database) -> bool:
    with database.connection() as connection:
        row = connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN notifier_leader'"
            " AND datname = current_database()"
        ).fetchone()
    return row is not None


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE leader SET epoch = epoch + 7",
        "UPDATE leader SET epoch = 0",
        "UPDATE leader SET owner = 'somebody else'",
        "DELETE FROM leader",
        "UPDATE leader SET until = db_now() - interval '1 hour'",
    ],
)
def test_a_lease_edited_by_hand_is_noticed_at_the_next_renewal(
    database: Database, take_part: TakePart, change: str
) -> None:
    thread = take_part(Leader(database, "one", 1.5, renew_every=0.1, poll=0.1))
    until(thread.leader.is_leader)

    edit(database, change)

    until(lambda: "loss" in thread.events)
    until(lambda: thread.events == ["gain", "loss", "gain"])
    assert lease(database)["owner"] == "one"


def test_a_lease_that_reaches_farther_than_anyone_grants_is_taken(
    database: Database, take_part: TakePart
) -> None:
    edit(database, "INSERT INTO leader VALUES ('scheduler', 'dead', 4, 'infinity')")

    thread = take_part(Leader(database, "alive", 2.0))

    until(thread.leader.is_leader)
    assert thread.leader.epoch == 5


def test_a_live_lease_is_not_taken(database: Database, take_part: TakePart) -> None:
    began = time.monotonic()
    edit(
        database,
        "INSERT INTO leader VALUES ('scheduler', 'alive', 4, db_now() + interval '1.2 s')",
    )

    thread = take_part(Leader(database, "waiting", 2.0, poll=0.05))

    until(thread.leader.is_leader)
    assert time.monotonic() - began >= 1.2


def test_the_database_clock_decides_when_a_lease_has_run_out(
    database: Database, clock: Clock, take_part: TakePart
) -> None:
    edit(
        database,
        "INSERT INTO leader VALUES ('scheduler', 'dead', 4, db_now() + interval '15 s')",
    )
    thread = take_part(Leader(database, "waiting", poll=0.05))

    clock.advance(16)

    assert until(thread.leader.is_leader) < AT_ONCE_S


def test_p9_a_renewal_that_hangs_does_not_prolong_the_lead(
    database: Database, another_database: AnotherDatabase, take_part: TakePart
) -> None:
    thread = take_part(Leader(another_database(), "stuck", 1.5, renew_every=0.1, poll=0.1))
    until(thread.leader.is_leader)
    ends: list[float] = []
    overdue: list[float] = []

    def has_ended() -> bool:
        term, at = thread.leader._term, steady()
        leads = thread.leader.is_leader()
        ends.extend([term[1]] if term else [])
        overdue.extend([at - term[1]] if term and leads and at >= term[1] else [])
        return not leads

    with database.connection() as connection, connection.transaction():
        connection.execute("SELECT 1 FROM leader FOR UPDATE")
        row = connection.execute("SELECT until - db_now() AS life FROM leader").fetchone()
        assert row is not None
        lapses_at = steady() + row["life"].total_seconds()
        until(has_ended)
        assert thread.leader.epoch is None

    # By its own clock, before the lease lapses in the database; the looks here may be late.
    assert overdue == []
    assert ends[-1] < lapses_at
    until(lambda: thread.events[:3] == ["gain", "loss", "gain"])


def test_who_cannot_start_to_lead_leaves_the_lead_to_another(
    database: Database, another_database: AnotherDatabase, take_part: TakePart
) -> None:
    def refuse() -> None:
        raise OSError

    lease_s = 60.0
    broken = take_part(Leader(database, "broken", lease_s, poll=0.3), on_gain=refuse)
    until(lambda: broken.events == ["gain", "loss"])

    sound = take_part(Leader(another_database(), "sound", lease_s, poll=0.1))

    assert until(sound.leader.is_leader) < AT_ONCE_S < lease_s / 2
    assert not broken.leader.is_leader()


def test_stepping_down_hands_over_to_another(
    database: Database, another_database: AnotherDatabase, take_part: TakePart
) -> None:
    lease_s = 60.0
    tired = take_part(Leader(database, "tired", lease_s))
    until(tired.leader.is_leader)
    fresh = take_part(Leader(another_database(), "fresh", lease_s))
    until(lambda: listening(database))

    tired.leader.step_down()

    assert until(fresh.leader.is_leader) < AT_ONCE_S < lease_s / 2


def test_p9_a_frozen_leader_is_succeeded_and_knows_it_when_woken(
    database_url: str, database: Database, take_part: TakePart
) -> None:
    ttl = 2.0
    script = Path(__file__).with_name("leading_process.py")
    process = subprocess.Popen(
        [sys.executable, str(script), database_url, str(ttl)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().split() == ["gain", "1"]
        successor = take_part(Leader(database, "successor", ttl, poll=0.2))

        process.send_signal(signal.SIGSTOP)
        until(successor.leader.is_leader)
        process.send_signal(signal.SIGCONT)

        assert process.stdout.readline().split() == ["loss"]
        assert successor.leader.is_leader()
        assert successor.leader.epoch == 2
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.communicate(timeout=20)
