"""Thousands due at one instant, beside a snapshot that nobody closes."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import psycopg

from peers.events import Event, build_event
from tests.chaos.conftest import Run, Surround
from tests.running import RunningApp, Surroundings, until

COUNT = int(os.environ.get("CHAOS_BACKLOG", "400"))
"""How many are due at once; 10000 takes some minutes."""
DEAD_SHARE = 5
SENDERS = 4
GROWTH_KB = 96 * 1024


@contextmanager
def old_snapshot(url: str) -> Iterator[psycopg.Connection]:
    """A transaction that sees the database as it was, for as long as the block lasts."""
    keep = "-c search_path=notifier -c idle_in_transaction_session_timeout=0"
    with psycopg.connect(url, options=keep) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute("SELECT count(*) FROM notice")
        yield connection


def memory_kb(app: RunningApp, what: str) -> int:
    """`VmRSS` (now) or `VmHWM` (the most so far) of the process that serves and sends."""
    text = max(
        (Path(f"/proc/{pid}/status").read_text() for pid in app.child_pids()),
        key=lambda status: int(status.partition("VmRSS:")[2].split()[0]),
    )
    return int(text.partition(f"{what}:")[2].split()[0])


def post_all(app: RunningApp, events: list[Event]) -> None:
    with app.poster() as poster:
        for event in events:
            assert poster.post(event).status == 202


def admit_all(app: RunningApp, events: list[Event]) -> None:
    threads = [
        threading.Thread(target=post_all, args=(app, events[n::SENDERS])) for n in range(SENDERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def left(around: Surroundings) -> int:
    (row,) = around.rows("SELECT count(*) AS n FROM notice WHERE state = 'email_pending'")
    return int(row["n"])


def claimed_in_turn(around: Surroundings) -> list[list[datetime]]:
    """The stop times of what each claim took first, claim after claim.

    What was handed back, because no link was to be had, has had its turn.
    """
    rows = around.rows(
        "SELECT min(t.recorded_at) AS first_at, d.stop_at"
        "  FROM transition t JOIN delivery d USING (notice_id)"
        " WHERE t.to_state = 'claimed' AND d.channel = 'email'"
        " GROUP BY notice_id, d.stop_at ORDER BY first_at"
    )
    groups = groupby(rows, key=itemgetter("first_at"))
    return [[row["stop_at"] for row in group] for _, group in groups]


def test_p5_a_backlog_goes_by_least_validity_and_what_is_dead_is_not_sent(
    database_url: str,
    surround: Surround,
    run: Run,
    record_property: Callable[[str, object], None],
) -> None:
    around = surround(database_url)
    app = run(around)
    draw = random.Random(4)
    living = [
        build_event(mode="email_only", life_s=draw.uniform(1200, 3000))
        for _ in range(COUNT - COUNT // DEAD_SHARE)
    ]
    dead = [build_event(mode="email_only", life_s=8.0) for _ in range(COUNT // DEAD_SHARE)]
    mixed = draw.sample(dead + living, COUNT)
    with old_snapshot(database_url) as old:
        with around.halted("all"):
            admit_all(app, mixed)
            until(lambda: left(around) == len(living), 60, "the dead to be expired")
            before_kb = memory_kb(app, "VmRSS")
        released_at = time.monotonic()
        until(lambda: not left(around), 60 + COUNT / 20, lambda: f"{left(around)} are left")
        drained_s = time.monotonic() - released_at
        assert old.execute("SELECT count(*) FROM notice").fetchone() == (0,)

    record_property("drained_per_s", round(len(living) / drained_s))
    record_property("grown_kb", memory_kb(app, "VmHWM") - before_kb)
    assert sorted(around.stored()) == sorted(each["destinations"]["email"] for each in living)
    states = around.rows("SELECT state, count(*) AS n FROM notice GROUP BY state ORDER BY state")
    assert [(row["state"], row["n"]) for row in states] == [
        ("complete", len(living)),
        ("expired", len(dead)),
    ]
    turns = claimed_in_turn(around)
    assert sum(map(len, turns)) == len(living)
    assert all(max(earlier) <= min(later) for earlier, later in pairwise(turns))
    assert memory_kb(app, "VmHWM") - before_kb < GROWTH_KB
