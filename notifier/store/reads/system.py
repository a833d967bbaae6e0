"""Which processes run, who leads, how long ago each sweep went through and the trail was signed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from notifier.domain.heartbeat import GONE_AFTER, LATE_AFTER, LOST_AFTER
from notifier.store.reads.outside_text import shown
from notifier.store.reads.sweeps import BACKLOG_LIMIT
from notifier.store.reads.trail_checkpoints import NewestCheckpoint, newest

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process that shares this database; times by the database clock.

    `silent_for`: since it last said that it lives, or that it stops.
    """

    owner: str
    host: str
    pid: int
    workers: int
    version: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    silent_for: timedelta

    @property
    def late(self) -> bool:
        """Whether it missed a beat; so it has when it is `silent`."""
        return self.stopped_at is None and self.silent_for > LATE_AFTER

    @property
    def silent(self) -> bool:
        """Whether it missed so many that it does not count as running."""
        return self.stopped_at is None and self.silent_for > LOST_AFTER

    @property
    def gone(self) -> bool:
        """Whether it has been silent for so long that nobody need look for it any more."""
        return self.stopped_at is None and self.silent_for > GONE_AFTER


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One sweep's latest run; `error` is what kind of fault the last failed run had, if any had."""

    name: str
    owner: str
    started_at: datetime
    finished_at: datetime | None
    rows: int | None
    backlog: int | None
    runs: int
    failures: int
    error: str | None
    failed_at: datetime | None

    @property
    def took(self) -> timedelta | None:
        """How long the latest run was; None while it runs, or where its process died in it."""
        ends = [end for end in (self.finished_at, self.failed_at) if end and end >= self.started_at]
        return max(ends) - self.started_at if ends else None

    @property
    def fails(self) -> bool:
        """Whether its latest run that ended was no good one."""
        if self.failed_at is None or self.finished_at is None:
            return self.error is not None
        return self.failed_at > self.finished_at

    @property
    def backlog_capped(self) -> bool:
        """Whether the backlog is at least this, because counting stopped there."""
        return self.backlog is not None and self.backlog >= BACKLOG_LIMIT


@dataclass(frozen=True, slots=True)
class LeaderRow:
    """Who holds a lease, and until when."""

    name: str
    owner: str
    epoch: int
    until: datetime
    lapsed: bool


@dataclass(frozen=True, slots=True)
class PauseRow:
    """A provider that nobody uses for the time being, because it answered about us.

    `times` counts such answers since `since`.
    """

    provider: str
    detail: str
    since: datetime
    until: datetime
    times: int


@dataclass(frozen=True, slots=True)
class SystemPage:
    """All of it at one instant."""

    processes: tuple[ProcessRow, ...]
    leaders: tuple[LeaderRow, ...]
    sweeps: tuple[SweepRow, ...]
    pauses: tuple[PauseRow, ...]
    as_of: datetime
    checkpoint: NewestCheckpoint | None


_PROCESSES: Final = """
    SELECT owner, host, pid, workers, version, started_at, seen_at, stopped_at,
           db_now() - seen_at AS silent_for
      FROM process
     WHERE coalesce(stopped_at, seen_at) > db_now() - interval '24 hours'
     ORDER BY stopped_at IS NOT NULL, seen_at DESC LIMIT 100
"""
_SWEEPS: Final = """
    SELECT name, owner, started_at, finished_at, rows, backlog, runs, failures, error, failed_at
      FROM sweep_run ORDER BY name
"""
_LEADERS: Final = "SELECT name, owner, epoch, until, until < db_now() AS lapsed FROM leader"
_PAUSES: Final = """
    SELECT provider, detail, since, until, times FROM provider_pause
     WHERE until > db_now() ORDER BY provider
"""


def load_system(connection: PooledConnection, *, with_hosts: bool) -> SystemPage:
    """The system page; without `with_hosts` no host name and no process id leaves this function."""
    row = connection.execute("SELECT db_now() AS now").fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    found = connection.execute(_PROCESSES).fetchall()
    processes = tuple(ProcessRow(**each) for each in found)
    leaders = tuple(LeaderRow(**each) for each in connection.execute(_LEADERS))
    sweeps = tuple(
        SweepRow(**{**each, "error": shown(each["error"])}) for each in connection.execute(_SWEEPS)
    )
    pauses, last = standing_pauses(connection), newest(connection)
    page = SystemPage(processes, leaders, sweeps, pauses, row["now"], last)
    return page if with_hosts else without_hosts(page)


def standing_pauses(connection: PooledConnection) -> tuple[PauseRow, ...]:
    """The pauses in force."""
    return tuple(
        PauseRow(**each | {name: shown(each[name]) for name in ("provider", "detail")})
        for each in connection.execute(_PAUSES)
    )


def without_hosts(page: SystemPage) -> SystemPage:
    """The same page with a number for each process in place of its name, host and id."""
    names = {each.owner: f"process {place}" for place, each in enumerate(page.processes, 1)}
    processes = tuple(
        replace(each, owner=names[each.owner], host="", pid=0) for each in page.processes
    )
    leaders = tuple(
        replace(each, owner=names.get(each.owner, "a process")) for each in page.leaders
    )
    sweeps = tuple(replace(each, owner=names.get(each.owner, "a process")) for each in page.sweeps)
    return replace(page, processes=processes, leaders=leaders, sweeps=sweeps)
