"""APScheduler as the product uses it: a fixed handful of interval jobs that nothing can stop.

The stored rows are a cache of the set that the leader holds in memory. Every two seconds, and
whenever the local wall clock was stepped, they are compared with it and put right: a row that
was deleted, paused, moved by hours or left by another version is written anew. Each pass of
the scheduler's thread is guarded, because APScheduler 3.11 ends the thread for good when its
store fails while a run is being written back.

A scheduler is built at each gain of leadership, in the process that uses it, and thrown away
at each loss.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import STATE_RUNNING, STATE_STOPPED
from apscheduler.triggers.interval import IntervalTrigger
from sqlalchemy import Engine, create_engine, delete, event, select

from notifier.clock import steady
from notifier.store.database import BoundedConnection, connection_keywords
from notifier.sweeps.jobs import TICKS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.pool import ConnectionPoolEntry

    from notifier.store.database import Database

log = logging.getLogger(__name__)

SCHEMA = "scheduler"
STORE, EXECUTOR = "default", "sweeps"
THREADS = 4
PASS_AT_LEAST_EVERY_S = 1.0
MEND_EVERY_S = 2.0
STEP_S = 0.5
"""A wall clock that moved this much against the steady one was set by somebody."""
BEHIND_LIMIT_S = 60.0
"""A row that is due for longer than this is moved to now instead of being caught up with."""
YOUNG_S = 5.0
"""A scheduler whose last good pass is older than this is not alive."""


class SchedulerRefused(Exception):
    """The process may not run a scheduler now."""


@dataclass(slots=True)
class _Plan:
    """A job as it should stand in the store."""

    name: str
    period_s: float


class SweepScheduler(BackgroundScheduler):  # type: ignore[misc]
    """A scheduler that outlives its store's failures and mends its own rows.

    `names` are the sweeps to run, `period_of` gives their periods in seconds and is asked
    again at each mending, `may_run` says whether this process still leads: without it
    nothing is triggered, whoever started the scheduler.
    """

    def __init__(
        self,
        engine: Engine,
        names: Sequence[str],
        period_of: Callable[[str], float],
        may_run: Callable[[], bool],
    ) -> None:
        self._plans = {name: _Plan(name, period_of(name)) for name in names}
        self._period_of = period_of
        self._may_run = may_run
        self._pid = os.getpid()
        self._last_pass = steady()
        self._last_mend = 0.0
        self._wall_offset = datetime.now(UTC).timestamp() - steady()
        self.store = SQLAlchemyJobStore(engine=engine, tableschema=SCHEMA)
        self.overruns = 0
        """Ticks that were dropped because the sweep's last run had not ended."""
        super().__init__(
            jobstores={STORE: self.store},
            executors={EXECUTOR: ThreadPoolExecutor(THREADS)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            jobstore_retry_interval=1,
            timezone=UTC,
            daemon=True,
        )
        self.add_listener(self._count_overrun, EVENT_JOB_MAX_INSTANCES)

    def start(self, paused: bool = False) -> None:
        """Put the stored rows right, then run. Raises `SchedulerRefused` without leadership."""
        if os.getpid() != self._pid:
            raise SchedulerRefused("built in another process; build one after the fork")
        if not self._may_run():
            raise SchedulerRefused("this process does not lead")
        # Paused, so that the first pass finds only rows that stand as planned.
        super().start(paused=True)
        try:
            self.mend(remove_others=True)
        except Exception:
            self.retire()
            raise
        if not paused:
            self.resume()

    def alive(self) -> bool:
        """Whether the thread lives and its last good pass is young."""
        return self.thread_lives() and self.silent_s() < YOUNG_S

    def thread_lives(self) -> bool:
        """Whether the thread exists; it may hang."""
        thread: threading.Thread | None = self._thread
        return thread is not None and thread.is_alive()

    def silent_s(self) -> float:
        """Seconds since the last pass that reached the store while not paused."""
        return steady() - self._last_pass

    def retire(self, timeout: float = 3.0) -> None:
        """Pause at once, then shut down; never waits longer than `timeout` for a hung thread."""
        if self.state == STATE_STOPPED:
            return
        self.pause()
        closer = threading.Thread(target=self._close_down, name="scheduler-retiring", daemon=True)
        closer.start()
        closer.join(timeout)

    def _close_down(self) -> None:
        try:
            self.shutdown(wait=False)
        except Exception as error:  # noqa: BLE001 - it is being thrown away
            log.warning("scheduler did not close cleanly: %s", type(error).__name__)

    def mend(self, *, remove_others: bool = False) -> None:
        """Write anew each row that is missing or does not stand as planned."""
        self._last_mend = steady()
        now = datetime.now(UTC)
        if remove_others:
            self._remove_others()
        found = self._next_runs()
        for plan in self._plans.values():
            period_s = self._period_of(plan.name)
            if period_s != plan.period_s or not _stands(found.get(plan.name), now, period_s):
                plan.period_s = period_s
                self._write(plan, now)

    def _write(self, plan: _Plan, now: datetime) -> None:
        self.add_job(
            TICKS[plan.name],
            IntervalTrigger(seconds=plan.period_s, timezone=UTC, start_date=now),
            id=plan.name,
            name=plan.name,
            executor=EXECUTOR,
            next_run_time=now,
            replace_existing=True,
        )

    def _next_runs(self) -> dict[str, float | None]:
        table = self.store.jobs_t
        with self.store.engine.connect() as connection:
            rows = connection.execute(select(table.c.id, table.c.next_run_time))
            return {row.id: row.next_run_time for row in rows}

    def _remove_others(self) -> None:
        table = self.store.jobs_t
        with self.store.engine.begin() as connection:
            connection.execute(delete(table).where(table.c.id.not_in(list(self._plans))))

    def _process_jobs(self) -> float:
        """One guarded pass; gives the seconds until the next, never more than one."""
        try:
            if self.state != STATE_RUNNING or not self._may_run():
                return PASS_AT_LEAST_EVERY_S
            if self._clock_was_set() or steady() - self._last_mend >= MEND_EVERY_S:
                self.mend()
            # A store that cannot be read is swallowed by APScheduler; mend's own query is not.
            wait_s = super()._process_jobs()
            self._last_pass = steady()
        except Exception as error:  # noqa: BLE001 - the thread must outlive any failure
            log.warning("scheduler pass failed: %s", type(error).__name__)
            self._last_mend = 0.0
            return PASS_AT_LEAST_EVERY_S
        return min(wait_s or PASS_AT_LEAST_EVERY_S, PASS_AT_LEAST_EVERY_S)

    def _clock_was_set(self) -> bool:
        # Next runs are wall-clock times: after a step back all would wait, and after a step of
        # years forward each missed run would be computed one by one.
        offset = datetime.now(UTC).timestamp() - steady()
        moved = abs(offset - self._wall_offset) > STEP_S
        self._wall_offset = offset
        return moved

    def _count_overrun(self, _event: JobSubmissionEvent) -> None:
        self.overruns += 1


def _stands(next_run: float | None, now: datetime, period_s: float) -> bool:
    if next_run is None:
        return False
    ahead_s = next_run - now.timestamp()
    return -BEHIND_LIMIT_S <= ahead_s <= period_s + STEP_S


def store_engine(database: Database) -> Engine:
    """A small engine of the job store's own. The caller builds it after any fork."""
    keywords: dict[str, Any] = connection_keywords(
        database.url, "notifier-scheduler", SCHEMA, "-c statement_timeout=5s"
    )
    del keywords["autocommit"], keywords["row_factory"]
    # Prepared statements would not survive a pooler between here and the server.
    keywords["prepare_threshold"] = None

    def connect() -> psycopg.Connection[Any]:
        return BoundedConnection.connect(database.url, **keywords)

    engine = create_engine(
        "postgresql+psycopg://",
        creator=connect,
        pool_size=2,
        max_overflow=0,
        pool_timeout=3,
        pool_pre_ping=True,
        hide_parameters=True,
    )
    _close_what_comes_back_late(engine)
    return engine


def _close_what_comes_back_late(engine: Engine) -> None:
    """Close a connection that a thread still held when the engine was thrown away.

    It would go back to a pool that nobody has any more, and stay open until that is collected.
    """
    thrown_away = threading.Event()

    def note(_engine: Engine) -> None:
        thrown_away.set()

    def close(_connection: object, record: ConnectionPoolEntry) -> None:
        if thrown_away.is_set():
            record.invalidate()

    event.listen(engine, "engine_disposed", note)
    event.listen(engine, "checkin", close)
