"""What runs by itself, as readiness, metrics and the System page see it.

Every query here costs a few index pages whatever the history: one row per sweep, one lease,
one row per process, and backlogs counted through partial indexes up to a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from notifier.store.reads.due import UNDECIDED

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import psycopg
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

BACKLOG_LIMIT = 1000
"""A backlog of this many rows means "this many or more"."""


@dataclass(frozen=True, slots=True)
class SweepAge:
    """One sweep's last runs. Times are the database's; ages in seconds.

    `age_s` is the time since the last good end, None where there never was one: a sweep that
    hangs or keeps failing grows old. `running_s` is set while a run is under way, or was when
    its process died. `error` is the type of the last failure, also after a good run.
    """

    name: str
    owner: str
    epoch: int
    started_at: datetime
    finished_at: datetime | None
    failed_at: datetime | None
    rows: int | None
    backlog: int | None
    runs: int
    failures: int
    error: str | None
    age_s: float | None
    running_s: float | None


@dataclass(frozen=True, slots=True)
class LeaderView:
    """The lease on the scheduler. `remaining_s` is negative when nobody leads."""

    owner: str
    epoch: int
    until: datetime
    remaining_s: float

    @property
    def held(self) -> bool:
        """Whether somebody leads."""
        return self.remaining_s > 0


@dataclass(frozen=True, slots=True)
class ProcessView:
    """One process of the product. `silent_s`: seconds since it last said that it lives."""

    owner: str
    host: str
    pid: int
    workers: int
    version: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    silent_s: float


SWEEP_AGES = """
    SELECT name, owner, epoch, started_at, finished_at, failed_at, rows, backlog, runs, failures,
           error, extract(epoch FROM at - finished_at)::float8 AS age_s,
           CASE WHEN started_at > greatest(coalesce(finished_at, '-infinity'),
                                           coalesce(failed_at, '-infinity'))
                THEN extract(epoch FROM at - started_at)::float8 END AS running_s
      FROM sweep_run, (SELECT db_now() AS at) AS clock
     ORDER BY name
"""
LEADER = """
    SELECT owner, epoch, until, extract(epoch FROM until - db_now())::float8 AS remaining_s
      FROM leader WHERE name = 'scheduler'
"""
PROCESSES = """
    SELECT owner, host, pid, workers, version, started_at, seen_at, stopped_at,
           extract(epoch FROM at - seen_at)::float8 AS silent_s
      FROM process, (SELECT db_now() AS at) AS clock
     ORDER BY stopped_at IS NOT NULL, started_at DESC, owner
     LIMIT 200
"""


def sweep_ages(connection: Connection) -> list[SweepAge]:
    """Every sweep that ever ran, by name."""
    return [SweepAge(**row) for row in connection.execute(SWEEP_AGES)]


def leader_view(connection: Connection) -> LeaderView | None:
    """Who leads, or led last; None where nobody ever did."""
    row = connection.execute(LEADER).fetchone()
    return None if row is None else LeaderView(**row)


def process_views(connection: Connection) -> list[ProcessView]:
    """The processes that are known, running ones first."""
    return [ProcessView(**row) for row in connection.execute(PROCESSES)]


# db_now() is volatile: only as a scalar subquery can it bound an index scan.
DUE_TO_SEND = """
    SELECT count(*) AS n FROM (
        SELECT 1 FROM delivery
         WHERE state = 'queued' AND due_at <= (SELECT db_now()) AND stop_at > (SELECT db_now())
         LIMIT %(limit)s) AS due
"""
LAPSED = """
    SELECT count(*) AS n FROM (
        SELECT 1 FROM delivery
         WHERE lease_owner IS NOT NULL AND lease_until < (SELECT db_now())
         LIMIT %(limit)s) AS due
"""
TO_EXPIRE = """
    SELECT count(*) AS n FROM (
        (SELECT 1 FROM delivery
          WHERE state IN ('standby', 'queued') AND stop_at <= (SELECT db_now())
          LIMIT %(limit)s)
        UNION ALL
        (SELECT 1 FROM delivery
          WHERE state = 'unknown' AND expires_at <= (SELECT db_now())
          LIMIT %(limit)s)) AS due
"""
TO_CHECK = """
    SELECT count(*) AS n FROM (
        SELECT 1 FROM delivery
         WHERE next_check_at <= (SELECT db_now()) AND state = %(state)s
         LIMIT %(limit)s) AS due
"""
FALLBACK_DUE = f"""
    WITH clock AS MATERIALIZED (SELECT db_now() AS now)
    SELECT count(*) AS n FROM (SELECT 1 {UNDECIDED} LIMIT %(limit)s) AS due
"""
PARKED = """
    SELECT count(*) AS n FROM (
        SELECT 1 FROM receipt WHERE applied_at IS NULL LIMIT %(limit)s) AS due
"""

UNCOUNTED = """
    SELECT count(*) AS n FROM (
        SELECT 1 FROM transition
         WHERE written_in >= (SELECT pg_snapshot_xmax(seen) FROM rollup_reader)
         LIMIT %(limit)s) AS due
"""


def due_to_send(connection: Connection, limit: int = BACKLOG_LIMIT) -> int:
    """Deliveries that could be claimed now; halts and provider pauses are not looked at."""
    return _count(connection, DUE_TO_SEND, limit)


def lapsed_leases(connection: Connection, limit: int = BACKLOG_LIMIT) -> int:
    """Leases that ran out and were not taken back yet."""
    return _count(connection, LAPSED, limit)


def to_expire(connection: Connection, limit: int = BACKLOG_LIMIT) -> int:
    """Deliveries past their stop time or expiry that are still open."""
    return min(_count(connection, TO_EXPIRE, limit), limit)


def to_poll(connection: Connection, limit: int = BACKLOG_LIMIT) -> int:
    """Accepted deliveries whose next look is due."""
    return _count(connection, TO_CHECK, limit, state="accepted")


def to_reconcile(connection: Connection, limit: int = BACKLOG_LIMIT) -> int:
    """Unknown deliveries whose next look is due."""
    return _count(connection, TO_CHECK, limit, state="unknown")


def fallback_due(connection: Connection, limit: int = BACKLOG_LIMIT) -> int:
    """Notices whose fallback time has come."""
    return _count(connection, FALLBACK_DUE, limit)


def parked_receipts(connection: Connection, limit: int = BACKLOG_LIMIT) -> int:
    """Receipts that no attempt was found for yet, or that a lock kept from being applied."""
    return _count(connection, PARKED, limit)


def uncounted(connection: Connection, limit: int = BACKLOG_LIMIT) -> int:
    """Rows of the trail that were written since they were last counted."""
    return _count(connection, UNCOUNTED, limit)


def _count(connection: Connection, query: str, limit: int, **values: object) -> int:
    row = connection.execute(query, {"limit": limit, **values}).fetchone()
    return int(row["n"]) if row else 0


BACKLOGS: dict[str, Callable[[Connection], int]] = {
    "claim": due_to_send,
    "rescue": lapsed_leases,
    "expiry": to_expire,
    "poll": to_poll,
    "reconcile": to_reconcile,
    "fallback": fallback_due,
    "receipts": parked_receipts,
    "rollup": uncounted,
}
"""Sweep name to what it has still to do, counted up to `BACKLOG_LIMIT`."""
