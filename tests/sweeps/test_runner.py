"""One tick: bounded batches, alone, written down."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg.rows import DictRow

from notifier.clock import DatabaseClock
from notifier.logs import configure_logs
from notifier.store.database import Database
from notifier.store.reads.sweeps import SweepAge, sweep_ages
from notifier.sweeps import jobs, runner
from notifier.sweeps.leader import Leader
from notifier.sweeps.runner import SweepRunner
from tests.sweeps.conftest import LeaderThread, Probe
from tests.sweeps.waiting import until

Body = Callable[[psycopg.Connection[DictRow]], int]


@dataclass
class Stage:
    database: Database
    leader: Leader

    def runner(self, **bodies: Body) -> SweepRunner:
        return SweepRunner(self.database, self.leader, DatabaseClock(), bodies, lambda _: 1.0)

    def age(self, name: str) -> SweepAge:
        with self.database.connection() as connection:
            return {age.name: age for age in sweep_ages(connection)}[name]


@pytest.fixture
def stage(database: Database, take_part: Callable[..., LeaderThread]) -> Stage:
    thread = take_part(Leader(database, "here"))
    until(thread.leader.is_leader)
    return Stage(database, thread.leader)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the product's own modules write into the log."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, sys.excepthook, threading.excepthook)
    written = io.StringIO()
    configure_logs(written, as_json=True)
    yield written
    root.handlers[:], root.level, sys.excepthook, threading.excepthook = before
    logging.captureWarnings(capture=False)
    logging.raiseExceptions = True


def test_batches_go_on_until_one_comes_back_empty(stage: Stage) -> None:
    left = [0, 5, 500, 500]

    stage.runner(expiry=lambda _: left.pop()).tick("expiry")

    age = stage.age("expiry")
    assert left == []
    assert (age.rows, age.runs, age.failures, age.error) == (1005, 1, 0, None)
    assert (age.owner, age.epoch, age.running_s) == ("here", 1, None)
    assert age.finished_at is not None
    assert age.finished_at >= age.started_at


def test_a_tick_that_always_finds_more_ends_after_its_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "RUN_LIMIT_S", 0.2)
    began = time.monotonic()

    def batch(connection: psycopg.Connection[DictRow]) -> int:
        connection.execute("SELECT pg_sleep(0.01)")
        return 1

    stage.runner(expiry=batch).tick("expiry")

    assert time.monotonic() - began >= 0.2
    assert (stage.age("expiry").rows or 0) >= 3


def test_a_sweep_that_raises_is_counted_and_shown_without_any_value(
    stage: Stage, probe: Probe
) -> None:
    probe.failing.add("expiry")
    sweeps = stage.runner(expiry=probe.body("expiry"))

    sweeps.tick("expiry")
    sweeps.tick("expiry")

    age = stage.age("expiry")
    assert (age.error, age.failures, age.runs) == ("UndefinedTable 42P01", 2, 2)
    assert age.finished_at is None
    assert age.failed_at is not None
    assert sweeps.error("expiry") == "UndefinedTable 42P01"

    probe.failing.clear()
    sweeps.tick("expiry")
    age = stage.age("expiry")
    assert (age.error, age.failures) == ("UndefinedTable 42P01", 2), "what failed stays beside it"
    assert age.finished_at is not None
    assert sweeps.error("expiry") is None


def test_the_log_names_the_type_of_a_sweeps_failure_and_no_value(
    stage: Stage, probe: Probe, logged: io.StringIO
) -> None:
    probe.failing.add("expiry")
    stage.runner(expiry=probe.body("expiry")).tick("expiry")

    (entry,) = map(json.loads, logged.getvalue().splitlines())
    assert (entry["template"], entry["level"]) == ("sweep expiry fails", "warning")
    assert (entry["exc_type"], entry["sqlstate"]) == ("UndefinedTable", "42P01")
    assert "example.org" not in logged.getvalue()


def test_a_failure_that_could_not_be_written_is_counted_later(
    stage: Stage, another_database: Callable[[], Database]
) -> None:
    outage = another_database()
    sweeps = SweepRunner(
        outage, stage.leader, DatabaseClock(), {"expiry": lambda _: 0}, lambda _: 1.0
    )
    with stage.database.connection() as connection:
        connection.execute("ALTER TABLE sweep_run RENAME TO away")
        sweeps.tick("expiry")
        connection.execute("ALTER TABLE away RENAME TO sweep_run")

    sweeps.tick("expiry")

    age = stage.age("expiry")
    assert (age.failures, age.runs, age.error) == (1, 1, "UndefinedTable 42P01")


def test_the_body_that_breaks_its_connection_hurts_only_itself(stage: Stage, probe: Probe) -> None:
    def break_it(connection: psycopg.Connection[DictRow]) -> int:
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return 0

    sweeps = stage.runner(expiry=break_it, rescue=probe.body("rescue"))
    sweeps.tick("expiry")
    sweeps.tick("rescue")

    assert stage.age("expiry").failures == 1
    assert stage.age("rescue").failures == 0


def test_who_does_not_lead_runs_nothing(database: Database, probe: Probe) -> None:
    follower = Leader(database, "follower")
    sweeps = SweepRunner(database, follower, DatabaseClock(), probe.bodies("expiry"), lambda _: 1.0)

    sweeps.tick("expiry")

    assert probe.runs["expiry"] == 0
    with database.connection() as connection:
        assert sweep_ages(connection) == [], "nor says that it ran"


def test_a_sweep_never_runs_twice_at_once_in_a_process(stage: Stage, probe: Probe) -> None:
    probe.held.add("expiry")
    sweeps = stage.runner(expiry=probe.body("expiry"))
    first = threading.Thread(target=sweeps.tick, args=("expiry",))
    first.start()
    until(lambda: "expiry" in probe.stuck)
    assert sweeps.running_s("expiry") is not None

    sweeps.tick("expiry")
    assert probe.runs["expiry"] == 0
    assert not sweeps.drain(0.05)

    probe.go.set()
    first.join(5)
    assert probe.runs["expiry"] == 1
    assert sweeps.drain(1.0)


def test_after_draining_nothing_runs_until_resumed(stage: Stage, probe: Probe) -> None:
    sweeps = stage.runner(expiry=probe.body("expiry"))
    assert sweeps.drain(1.0)
    sweeps.tick("expiry")
    assert probe.runs["expiry"] == 0

    sweeps.resume()
    sweeps.tick("expiry")
    assert probe.runs["expiry"] == 1


def test_a_body_without_a_job_is_refused(stage: Stage, probe: Probe) -> None:
    with pytest.raises(ValueError, match="no job exists for: sweep_the_floor"):
        stage.runner(sweep_the_floor=probe.body("x"))


def test_the_stored_names_of_the_jobs_never_change() -> None:
    assert {name: function.__qualname__ for name, function in jobs.TICKS.items()} == {
        "claim": "claim_tick",
        "poll": "poll_tick",
        "reconcile": "reconcile_tick",
        "fallback": "fallback_tick",
        "expiry": "expiry_tick",
        "rescue": "rescue_tick",
        "receipts": "receipts_tick",
        "rollup": "rollup_tick",
        "alert": "alert_tick",
        "checkpoint": "checkpoint_tick",
        "retention": "retention_tick",
        "export": "export_tick",
        "sender_domains": "sender_domains_tick",
    }
    assert {function.__module__ for function in jobs.TICKS.values()} == {"notifier.sweeps.jobs"}


def test_each_job_runs_the_sweep_of_its_name(stage: Stage, probe: Probe) -> None:
    sweeps = stage.runner(**probe.bodies(*jobs.TICKS))
    jobs.register(sweeps)
    try:
        for function in jobs.TICKS.values():
            function()
    finally:
        jobs.unregister(sweeps)
    jobs.expiry_tick()

    assert probe.runs == dict.fromkeys(jobs.TICKS, 1)
