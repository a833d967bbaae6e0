"""What runs by itself in one process, started and stopped as a whole.

A process with workers takes part in the election and runs the scheduler while it leads. One
without workers only keeps its clock, its heartbeat and its wake-up lines. Readiness is told
from memory, so that it answers at once whatever the database does.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from werkzeug.serving import is_running_from_reloader

from notifier.clock import DatabaseClock, steady
from notifier.domain.heartbeat import BEAT_EVERY
from notifier.store.reads.sweeps import LeaderView, SweepAge, leader_view, sweep_ages
from notifier.sweeps import jobs
from notifier.sweeps.leader import Leader
from notifier.sweeps.line import time_boxed
from notifier.sweeps.processes import Heartbeat, owner_name, prune
from notifier.sweeps.runner import RUN_LIMIT_S, SweepRunner
from notifier.sweeps.scheduler import SweepScheduler, store_engine
from notifier.sweeps.wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Engine

    from notifier.store.database import Database
    from notifier.sweeps.line import Connection
    from notifier.sweeps.runner import Body

log = logging.getLogger(__name__)

UPKEEP_EVERY_S = 1.0
CLOCK_EVERY_S = 2.0
PRUNE_EVERY_S = 3600.0
STALLED_AFTER_S = 30.0
"""A leader whose scheduler made no good pass for so long gives the lease up and starts afresh."""
SNAPSHOT_LIMIT_S = 15.0
DRAIN_S = 5.0
CONNECTIONS = 8
"""The connections that a host uses at most; its `Database` should be its own, of this size."""


class ReadinessPart(NamedTuple):
    """One thing that readiness names."""

    part: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the database last told about the sweeps, and when (steady time)."""

    taken_at: float
    ages: dict[str, SweepAge]
    leader: LeaderView | None


class SweepHost:
    """The threads of one process that nobody calls.

    `database` should not be the one that requests use: a host holds connections for long, and
    must not wait behind a full pool. `bodies` and `period_of` are those of `SweepRunner`.
    `workers` 0 means: never leader. Build and start it after any fork, never at import.
    """

    def __init__(  # noqa: PLR0913 - the composition root names each
        self,
        database: Database,
        *,
        workers: int,
        version: str,
        bodies: Mapping[str, Body],
        period_of: Callable[[str], float],
        clock: DatabaseClock | None = None,
        wakeup: Wakeup | None = None,
        owner: str | None = None,
        ttl: float = 15.0,
        stalled_after: float = STALLED_AFTER_S,
    ) -> None:
        self.owner = owner or owner_name()
        self.clock = clock or DatabaseClock()
        self.wakeup = wakeup or Wakeup(database)
        self.leader = Leader(database, self.owner, ttl)
        self.runner = SweepRunner(database, self.leader, self.clock, bodies, period_of)
        self.scheduler: SweepScheduler | None = None
        self._database = database
        self._workers = workers
        self._ttl = ttl
        self._stalled_after = stalled_after
        self._heartbeat = Heartbeat(self.owner, workers=workers, version=version)
        self._engine: Engine | None = None
        self._pid = os.getpid()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._snapshot: Snapshot | None = None
        self._leader_seen_at = steady()
        self._done_at: dict[str, float] = {}

    def start(self, *, reloader: bool = False) -> bool:
        """Start the threads; False where nothing was started.

        `reloader`: werkzeug's reloader is on, so that there are two processes, and only the
        child that serves may start anything. Raises `RuntimeError` after a fork.
        """
        if os.getpid() != self._pid:
            message = "this host was built in another process; build one after the fork"
            raise RuntimeError(message)
        if self._threads or (reloader and not is_running_from_reloader()):
            return False
        self._stop.clear()
        self.wakeup.start()
        self._spawn("sweeps-upkeep", self._keep_up)
        if self._workers > 0:
            jobs.register(self.runner)
            self._spawn("sweeps-leader", self._lead)
        return True

    def stop(self, timeout: float = 15.0) -> None:
        """Pause, let running sweeps end their batch, resign, say goodbye; in that order."""
        if os.getpid() != self._pid or not self._threads:
            return
        until = steady() + timeout
        self._stop.set()
        for thread in self._threads:
            thread.join(max(until - steady(), 0.1))
        self._threads.clear()
        jobs.unregister(self.runner)
        self.wakeup.stop()
        self._try("leave", self._heartbeat.leave)

    def readiness(self) -> list[ReadinessPart]:
        """Each part with whether it is well and what to say of it. Asks nobody, never blocks."""
        parts = [self._clock_part(), self._leader_part()]
        leads = self.leader.is_leader()
        if leads:
            parts.append(self._scheduler_part())
        snapshot = self._snapshot
        age_s = None if snapshot is None else steady() - snapshot.taken_at
        if snapshot is None or age_s is None or age_s > SNAPSHOT_LIMIT_S:
            detail = "ages never read" if age_s is None else f"ages last read {age_s:.0f} s ago"
            parts.append(ReadinessPart("sweeps", not leads, detail))
        known = set(snapshot.ages) if snapshot else set()
        names = self.runner.names if leads else sorted(known | set(self.runner.names))
        return parts + [self._sweep_part(name, snapshot, leads=leads) for name in names]

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    # ------------------------------------------------------------ leading

    def _lead(self) -> None:
        self.leader.run(self._on_gain, self._on_loss, self._stop)

    def _on_gain(self) -> None:
        self.runner.resume()
        self._engine = store_engine(self._database)
        scheduler = SweepScheduler(
            self._engine, self.runner.names, self.runner.period_s, self.leader.is_leader
        )
        scheduler.start()
        # Seen by the upkeep only once it runs, or it would be taken for a dead one.
        self.scheduler = scheduler

    def _on_loss(self) -> None:
        scheduler, engine = self.scheduler, self._engine
        self.scheduler = self._engine = None
        if scheduler is not None:
            scheduler.retire()
        self.runner.drain(DRAIN_S if self._stop.is_set() else 0.1)
        if engine is not None:
            engine.dispose()

    def _tend(self) -> None:
        """A leader without a living scheduler is worse than none: start afresh."""
        scheduler = self.scheduler
        if scheduler is None or not self.leader.is_leader():
            return
        if not scheduler.thread_lives() or scheduler.silent_s() > self._stalled_after:
            log.error("the scheduler stalled; giving the lease up")
            self.leader.step_down()

    # ------------------------------------------------------------ upkeep

    def _keep_up(self) -> None:
        while not self._stop.is_set():
            self._every("clock", CLOCK_EVERY_S, self.clock.refresh)
            self._every("heartbeat", BEAT_EVERY.total_seconds(), self._heartbeat.beat)
            self._every("prune", PRUNE_EVERY_S, prune)
            self._every("snapshot", UPKEEP_EVERY_S, self._look)
            self._tend()
            self._stop.wait(UPKEEP_EVERY_S)

    def _every(self, name: str, seconds: float, work: Callable[[Connection], object]) -> None:
        now = steady()
        # Half a pass early rather than a whole pass late.
        if now - self._done_at.get(name, -seconds) < seconds - UPKEEP_EVERY_S / 2:
            return
        if self._try(name, work):
            self._done_at[name] = now

    def _try(self, name: str, work: Callable[[Connection], object]) -> bool:
        try:
            with self._database.connection(timeout=1.0) as connection, time_boxed(connection):
                work(connection)
        except Exception as error:  # noqa: BLE001 - tried again; readiness shows the age
            log.warning("%s failed: %s", name, type(error).__name__)
            return False
        return True

    def _look(self, connection: Connection) -> None:
        ages = {age.name: age for age in sweep_ages(connection)}
        view = leader_view(connection)
        self._snapshot = Snapshot(steady(), ages, view)
        if view is not None and view.held:
            self._leader_seen_at = steady()

    # ------------------------------------------------------------ readiness

    def _clock_part(self) -> ReadinessPart:
        age_s = self.clock.age_s()
        detail = "never read" if age_s is None else f"read {age_s:.1f} s ago"
        return ReadinessPart("clock", self.clock.known(), detail)

    def _leader_part(self) -> ReadinessPart:
        if self.leader.is_leader():
            return ReadinessPart("leader", True, f"this process leads, term {self.leader.epoch}")
        without_s = steady() - self._leader_seen_at
        view = self._snapshot.leader if self._snapshot else None
        if view is not None and without_s < self._ttl:
            return ReadinessPart("leader", True, f"{view.owner} leads, term {view.epoch}")
        # A candidate that wins nothing although nobody leads is itself in trouble.
        ok = self._workers == 0 or without_s < 2 * self._ttl
        return ReadinessPart("leader", ok, f"nobody seen leading for {without_s:.0f} s")

    def _scheduler_part(self) -> ReadinessPart:
        scheduler = self.scheduler
        if scheduler is None:
            return ReadinessPart("scheduler", self.leader.led_for_s() < 5.0, "starting")
        if not scheduler.thread_lives():
            return ReadinessPart("scheduler", False, "its thread is dead")
        detail = f"last pass {scheduler.silent_s():.1f} s ago"
        return ReadinessPart("scheduler", scheduler.alive(), detail)

    def _sweep_part(self, name: str, snapshot: Snapshot | None, *, leads: bool) -> ReadinessPart:
        seen = snapshot.ages.get(name) if snapshot else None
        age_s = None
        if snapshot is not None and seen is not None and seen.age_s is not None:
            age_s = seen.age_s + steady() - snapshot.taken_at
        if not leads:
            detail = "no good run yet" if age_s is None else f"last good run {age_s:.1f} s ago"
            return ReadinessPart(f"sweep:{name}", True, detail)
        return self._led_sweep_part(name, age_s)

    def _led_sweep_part(self, name: str, age_s: float | None) -> ReadinessPart:
        # What an earlier leader left undone counts only from the gain of leadership on.
        led_s = self.leader.led_for_s()
        old_s = led_s if age_s is None else min(age_s, led_s)
        limit_s = 3 * self.runner.period_s(name) + RUN_LIMIT_S
        told = "no good run yet" if age_s is None else f"last good run {age_s:.1f} s ago"
        detail = f"{told}, every {self.runner.period_s(name):g} s"
        running_s, error = self.runner.running_s(name), self.runner.error(name)
        if running_s is not None and running_s > RUN_LIMIT_S:
            detail += f", running for {running_s:.1f} s"
        if error is not None:
            detail += f", failing: {error}"
        return ReadinessPart(f"sweep:{name}", old_s <= limit_s, detail)
