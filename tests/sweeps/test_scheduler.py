"""The scheduler goes on whatever happens to its rows, its connections and the wall clock."""

from __future__ import annotations

import ctypes
import os
import pickle
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import apscheduler.schedulers.base
import pytest
from apscheduler.triggers.interval import IntervalTrigger

from notifier.store.database import Database
from notifier.sweeps import scheduler as scheduler_module
from notifier.sweeps.host import SweepHost
from notifier.sweeps.scheduler import SchedulerRefused, SweepScheduler, store_engine
from tests.sweeps.conftest import Probe
from tests.sweeps.waiting import until

RunHost = Callable[..., SweepHost]


PERIOD_S = 0.2
"""Between two runs of a sweep, where a test does not say otherwise."""


def goes_on(probe: Probe, *names: str) -> None:
    """Wait for two more runs of each sweep. What was stopped or put off never runs again here."""
    before = probe.runs.copy()
    until(
        lambda: all(probe.runs[name] >= before[name] + 2 for name in names),
        what=f"two more runs of each of {names}",
    )


def at_most(seconds: float) -> float:
    """Runs that a sweep can have made in this time where none of them is made up for."""
    return seconds / PERIOD_S + 3


def stored(database: Database) -> dict[str, float | None]:
    with database.connection() as connection:
        rows = connection.execute("SELECT id, next_run_time FROM scheduler.apscheduler_jobs")
        return {row["id"]: row["next_run_time"] for row in rows}


def test_the_stored_jobs_are_the_fixed_set(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry", "rescue")
    goes_on(probe, "expiry", "rescue")

    assert set(stored(database)) == {"expiry", "rescue"}
    assert host.scheduler is not None
    for job in host.scheduler.get_jobs():
        assert job.coalesce
        assert job.max_instances == 1
        assert job.misfire_grace_time is None
        assert job.trigger.timezone is UTC
        assert job.args == ()
        assert job.executor == "sweeps"


def test_b084_it_goes_on_although_its_connections_die_again_and_again(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry", "rescue")
    goes_on(probe, "expiry", "rescue")
    killed = 0

    with database.connection() as connection:
        while killed < 60:
            killed += connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND application_name LIKE 'notifier%'"
            ).rowcount
            time.sleep(random_pause(killed))

    goes_on(probe, "expiry", "rescue")
    assert host.scheduler is not None
    until(host.scheduler.alive)


def random_pause(seed: int) -> float:
    """Between nothing and 0.1 s, so that kills fall everywhere in a pass."""
    return (seed * 37 % 11) / 110


def test_jobs_of_an_earlier_version_are_removed_at_the_start(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    first = run_host(database, probe, "expiry", "rescue")
    goes_on(probe, "rescue")
    first.stop()

    run_host(database, probe, "expiry")

    until(lambda: set(stored(database)) == {"expiry"})
    goes_on(probe, "expiry")


def renamed(job_state: bytes) -> bytes:
    """The row as a version would have stored it whose function had another name."""
    state = pickle.loads(job_state)  # noqa: S301 - written by this test's own scheduler
    state["func"] = "notifier.sweeps.jobs:tick_of_another_version"
    return pickle.dumps(state)


@pytest.mark.parametrize(
    "damage", ["rename", "garbage", "delete", "pause", "far future", "long past", "executor"]
)
def test_a_damaged_job_row_stops_nothing(
    database: Database, probe: Probe, run_host: RunHost, damage: str
) -> None:
    host = run_host(database, probe, "expiry", "rescue")
    goes_on(probe, "expiry", "rescue")

    with database.connection() as connection:
        row = connection.execute(
            "SELECT job_state FROM scheduler.apscheduler_jobs WHERE id = 'expiry'"
        ).fetchone()
        assert row is not None
        state = pickle.loads(row["job_state"])  # noqa: S301 - as above
        lost = pickle.dumps({**state, "executor": "no such pool"})
        changes: dict[str, tuple[str, list[object]]] = {
            "rename": ("SET job_state = %s", [renamed(row["job_state"])]),
            "garbage": ("SET job_state = %s", [b"not a pickle"]),
            "executor": ("SET job_state = %s", [lost]),
            "pause": ("SET next_run_time = NULL", []),
            "far future": ("SET next_run_time = next_run_time + 86400", []),
            "long past": ("SET next_run_time = 0", []),
        }
        if damage == "delete":
            connection.execute("DELETE FROM scheduler.apscheduler_jobs WHERE id = 'expiry'")
        else:
            change, values = changes[damage]
            connection.execute(
                f"UPDATE scheduler.apscheduler_jobs {change} WHERE id = 'expiry'", values
            )

    goes_on(probe, "rescue")
    goes_on(probe, "expiry")
    assert host.scheduler is not None
    until(host.scheduler.alive)


def test_a_changed_period_takes_effect_while_running(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    periods = {"expiry": 3600.0}
    run_host(database, probe, "expiry", period_of=lambda name: periods[name])
    until(lambda: probe.runs["expiry"] == 1)

    periods["expiry"] = 0.1

    goes_on(probe, "expiry")


@pytest.fixture
def two_stages(database: Database) -> Iterator[Callable[..., SweepScheduler]]:
    started: list[SweepScheduler] = []

    def build(may_run: Callable[[], bool]) -> SweepScheduler:
        built = SweepScheduler(store_engine(database), ["expiry"], lambda _: 0.1, may_run)
        started.append(built)
        return built

    yield build
    for scheduler in started:
        scheduler.retire()
        scheduler.store.engine.dispose()


def test_b082_a_second_scheduler_on_the_store_is_refused(
    database: Database,
    probe: Probe,
    run_host: RunHost,
    two_stages: Callable[..., SweepScheduler],
) -> None:
    leading = run_host(database, probe, "expiry")
    goes_on(probe, "expiry")
    follower = SweepHost(
        database, workers=1, version="x", bodies={}, period_of=lambda _: 1.0
    ).leader

    with pytest.raises(SchedulerRefused, match="does not lead"):
        two_stages(follower.is_leader).start()

    goes_on(probe, "expiry")
    assert leading.leader.is_leader()


def test_b082_two_schedulers_forced_onto_one_store_go_on(
    database: Database,
    probe: Probe,
    run_host: RunHost,
    two_stages: Callable[..., SweepScheduler],
) -> None:
    host = run_host(database, probe, "expiry")
    goes_on(probe, "expiry")
    forced = two_stages(lambda: True)
    forced.start()

    time.sleep(2.5)
    goes_on(probe, "expiry")

    until(forced.alive)
    assert host.scheduler is not None
    until(host.scheduler.alive)


def test_b084_a_pass_that_fails_does_not_end_the_thread(
    two_stages: Callable[..., SweepScheduler], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = two_stages(lambda: True)
    built.start()
    failed: list[int] = []

    def fail() -> None:
        failed.append(1)
        raise ConnectionError

    with monkeypatch.context() as trouble:
        trouble.setattr(built, "mend", fail)
        until(lambda: len(failed) >= 2)
    until(built.alive)
    assert built.thread_lives()


def test_b130_a_scheduler_is_refused_in_a_forked_child(
    two_stages: Callable[..., SweepScheduler], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = two_stages(lambda: True)
    monkeypatch.setattr(os, "getpid", lambda: 1)

    with pytest.raises(SchedulerRefused, match="another process"):
        built.start()


class WallClock:
    """The wall clock as the scheduler reads it; a test sets it at will."""

    shift = timedelta(0)

    def set(self, instant: datetime) -> None:
        self.shift = instant - datetime.now(UTC)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.shift

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wall = self

        class Shifted(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Any:
                return datetime.now(tz) + wall.shift

        monkeypatch.setattr(apscheduler.schedulers.base, "datetime", Shifted)
        monkeypatch.setattr(scheduler_module, "datetime", Shifted)


@pytest.fixture
def wall_clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    made = WallClock()
    made.install(monkeypatch)
    return made


def test_b078_a_wall_clock_that_is_set_neither_stops_nor_bursts(
    database: Database, probe: Probe, run_host: RunHost, wall_clock: WallClock
) -> None:
    run_host(database, probe, "expiry")
    goes_on(probe, "expiry")

    for hours in (2, 0, -2, 24 * 365 * 30, 0):
        wall_clock.shift = timedelta(hours=hours)
        before, began = probe.runs["expiry"], time.monotonic()
        goes_on(probe, "expiry")
        assert probe.runs["expiry"] - before <= at_most(time.monotonic() - began)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "US/Pacific"])
def test_b080_nights_on_which_the_clocks_change_are_like_any_other(
    database: Database,
    probe: Probe,
    run_host: RunHost,
    wall_clock: WallClock,
    monkeypatch: pytest.MonkeyPatch,
    zone: str,
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    changes = {
        "Europe/Berlin": [(2027, 3, 28, 1), (2027, 10, 31, 1)],
        "US/Pacific": [(2027, 3, 14, 10), (2027, 11, 7, 9)],
    }
    try:
        run_host(database, probe, "expiry")
        for change in changes[zone]:
            at = datetime(*change, tzinfo=UTC)
            wall_clock.set(at - timedelta(seconds=2.5))
            before, began = probe.runs["expiry"], time.monotonic()
            until(lambda at=at: wall_clock.now() > at)  # type: ignore[misc]
            goes_on(probe, "expiry")
            assert probe.runs["expiry"] - before <= at_most(time.monotonic() - began)
            next_run = stored(database)["expiry"]
            assert next_run is not None
            assert at.timestamp() < next_run < at.timestamp() + 60
    finally:
        monkeypatch.undo()
        time.tzset()


def test_b086_late_and_missed_runs_are_coalesced_not_dropped(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    names = ["expiry", "rescue", "poll", "fallback", "receipts"]
    host = run_host(database, probe, *names)
    goes_on(probe, *names)
    probe.held |= set(names[:4])
    until(lambda: probe.stuck >= set(names[:4]))
    stuck_at = probe.runs.copy()

    time.sleep(5.0)
    assert probe.runs["receipts"] <= stuck_at["receipts"] + 1
    assert host.scheduler is not None
    assert host.scheduler.overruns > 0
    probe.held.clear()
    released_at = time.monotonic()
    probe.go.set()

    goes_on(probe, *names)
    made = probe.runs["receipts"] - stuck_at["receipts"]
    assert made <= 1 + at_most(time.monotonic() - released_at)


def kill_thread(ident: int) -> None:
    """Raise SystemExit in another thread: the one thing that no `except Exception` survives."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(SystemExit))


def scheduler_part(host: SweepHost) -> tuple[bool, str]:
    return next(
        ((part.ok, part.detail) for part in host.readiness() if part.part == "scheduler"),
        (True, "not leading"),
    )


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_p11_b134_a_killed_scheduler_thread_shows_and_is_replaced(
    database: Database, probe: Probe, run_host: RunHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = run_host(database, probe, "expiry")
    goes_on(probe, "expiry")
    first = host.scheduler
    assert first is not None

    with monkeypatch.context() as unattended:
        unattended.setattr(host, "_tend", lambda: None)
        kill_thread(first._thread.ident)
        until(lambda: scheduler_part(host) == (False, "its thread is dead"))

    until(lambda: host.scheduler not in {None, first})
    goes_on(probe, "expiry")
    until(lambda: scheduler_part(host)[0])


def test_p11_b134_a_hung_scheduler_shows_and_is_replaced(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry", stalled_after=12.0)
    goes_on(probe, "expiry")
    first = host.scheduler
    assert first is not None
    silent = first.silent_s

    with first._jobstores_lock:
        until(lambda: not scheduler_part(host)[0])
        assert silent() > 5.0
        until(lambda: host.scheduler not in {None, first})
        goes_on(probe, "expiry")


def test_p11_b134_a_paused_scheduler_shows(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry")
    goes_on(probe, "expiry")
    assert host.scheduler is not None

    host.scheduler.pause()
    until(lambda: not scheduler_part(host)[0])
    host.scheduler.resume()

    until(lambda: scheduler_part(host)[0])
    goes_on(probe, "expiry")


def test_the_trigger_is_an_interval_and_nothing_else(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry")
    goes_on(probe, "expiry")
    assert host.scheduler is not None

    assert {type(job.trigger) for job in host.scheduler.get_jobs()} == {IntervalTrigger}


def test_a_connection_that_comes_back_to_an_engine_thrown_away_is_closed(
    database: Database,
) -> None:
    engine = store_engine(database)
    held = [engine.connect(), engine.connect()]
    lines: list[Any] = [each.connection.dbapi_connection for each in held]
    held[0].close()
    assert not lines[0].closed
    engine.dispose()
    assert lines[0].closed
    assert not lines[1].closed
    held[1].close()
    assert lines[1].closed
