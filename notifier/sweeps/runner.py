"""One tick of a sweep: run its body in bounded batches, alone, and write down how it went.

A body is a plain function that takes a connection, does one bounded batch and returns the
number of rows it did. It is correct when several processes run it at once; the leader check
here only saves work.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notifier.clock import DatabaseClock, steady
from notifier.store.reads.sweeps import BACKLOGS
from notifier.sweeps.jobs import TICKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import psycopg
    from psycopg.rows import DictRow

    from notifier.store.database import Database
    from notifier.sweeps.leader import Leader

    Body = Callable[[psycopg.Connection[DictRow]], int]

log = logging.getLogger(__name__)

RUN_LIMIT_S = 2.0
"""A tick starts no further batch after this long; the next tick goes on."""

BEGIN = """
    INSERT INTO sweep_run AS run (name, owner, epoch, started_at)
    VALUES (%(name)s, %(owner)s, %(epoch)s, db_now())
    ON CONFLICT (name) DO UPDATE
       SET owner = excluded.owner, epoch = excluded.epoch, started_at = excluded.started_at
"""
# finished_at is the last end that was good: a sweep that hangs or keeps failing grows old.
# The error stays as the kind of the last failure, so that one that is over can still be explained.
END = """
    UPDATE sweep_run
       SET finished_at = db_now(), rows = %(rows)s, backlog = %(backlog)s,
           error = CASE WHEN %(unwritten)s > 0 THEN %(error)s ELSE error END,
           runs = runs + 1, failures = failures + %(unwritten)s
     WHERE name = %(name)s
"""
FAIL = """
    UPDATE sweep_run
       SET failed_at = db_now(), error = %(error)s, runs = runs + 1,
           failures = failures + %(unwritten)s
     WHERE name = %(name)s
"""


@dataclass(slots=True)
class Course:
    """What this process knows by itself about one sweep's runs."""

    started_at: float | None = None
    failures_unwritten: int = 0
    failures: int = 0
    error: str | None = None


class SweepRunner:
    """Runs sweeps by name for the process that leads.

    `bodies` maps a sweep's name (one of `jobs.TICKS`) to its body, `period_of` gives a
    sweep's period in seconds and may change its mind while running. Raises `ValueError` for
    a body whose name no job has.
    """

    def __init__(
        self,
        database: Database,
        leader: Leader,
        clock: DatabaseClock,
        bodies: Mapping[str, Body],
        period_of: Callable[[str], float],
    ) -> None:
        unknown = sorted(set(bodies) - set(TICKS))
        if unknown:
            raise ValueError(f"no job exists for: {', '.join(unknown)}")
        self.names = tuple(name for name in TICKS if name in bodies)
        self.clock = clock
        self._database = database
        self._leader = leader
        self._bodies = dict(bodies)
        self._period_of = period_of
        self._courses = {name: Course() for name in self.names}
        self._locks = {name: threading.Lock() for name in self.names}
        self._stopping = threading.Event()

    def period_s(self, name: str) -> float:
        """Seconds between two ticks of a sweep, never below a twentieth of a second."""
        return max(float(self._period_of(name)), 0.05)

    def tick(self, name: str) -> None:
        """Run one sweep now: nothing where this process does not lead or it runs already."""
        lock = self._locks.get(name)
        if lock is None or self._stopping.is_set() or not self._leader.is_leader():
            return
        if not lock.acquire(blocking=False):
            return
        try:
            self._run(name, self._courses[name])
        finally:
            lock.release()

    def running_s(self, name: str) -> float | None:
        """Seconds since the present run began in this process, None when none is under way."""
        started_at = self._courses[name].started_at
        return None if started_at is None else steady() - started_at

    def error(self, name: str) -> str | None:
        """The kind of the last run's failure in this process, None after a good run."""
        return self._courses[name].error

    def resume(self) -> None:
        """Let ticks run (again)."""
        self._stopping.clear()

    def drain(self, timeout: float) -> bool:
        """Let no tick begin, end running ones after their batch; whether all ended in time."""
        self._stopping.set()
        until = steady() + timeout
        ended = True
        for lock in self._locks.values():
            if lock.acquire(timeout=max(until - steady(), 0.001)):
                lock.release()
            else:
                ended = False
        return ended

    def _run(self, name: str, course: Course) -> None:
        course.started_at = steady()
        try:
            with self._database.connection() as connection:
                connection.execute(BEGIN, self._row(name))
                rows = self._batches(name, connection, course.started_at)
                self._write_end(connection, name, course, rows)
            course.error = None
        except Exception as error:  # one sweep's trouble stays its own
            course.failures += 1
            course.failures_unwritten += 1
            kind, before = kind_of(error), course.error
            course.error = kind
            if kind != before:
                log.warning("sweep %s fails", name, exc_info=error)
            self._write_failure(name, course)
        finally:
            course.started_at = None

    def _batches(
        self, name: str, connection: psycopg.Connection[DictRow], started_at: float
    ) -> int:
        body, total = self._bodies[name], 0
        while self._leader.is_leader():
            done = body(connection)
            total += done
            if not done or self._stopping.is_set() or steady() - started_at > RUN_LIMIT_S:
                break
        return total

    def _row(self, name: str) -> dict[str, object]:
        return {"name": name, "owner": self._leader.owner, "epoch": self._leader.epoch or 0}

    def _write_end(
        self, connection: psycopg.Connection[DictRow], name: str, course: Course, rows: int
    ) -> None:
        unwritten = course.failures_unwritten
        measure = BACKLOGS.get(name)
        connection.execute(
            END,
            {
                "name": name,
                "rows": rows,
                "backlog": measure(connection) if measure else None,
                "unwritten": unwritten,
                "error": course.error,
            },
        )
        course.failures_unwritten -= unwritten

    def _write_failure(self, name: str, course: Course) -> None:
        unwritten = course.failures_unwritten
        values = self._row(name) | {"error": course.error, "unwritten": unwritten}
        try:
            with self._database.connection(timeout=0.5) as connection:
                connection.execute(FAIL, values)
        except Exception as error:  # the next run that can write tells of it
            log.warning("failure of sweep %s not written", name, exc_info=error)
        else:
            course.failures_unwritten -= unwritten


def kind_of(error: BaseException) -> str:
    """The error's type and SQLSTATE. Never its text: that may quote a row."""
    code = getattr(error, "sqlstate", None)
    return f"{type(error).__name__} {code}" if code else type(error).__name__
