"""Which process runs the scheduler: the holder of one lease row.

A leader only saves work; every sweep is correct when several run it at once. The lease is
judged by the database's clock when it is taken, and by a steady local clock, counted from
before the query, while it is held: a holder that was frozen, or cut off, knows by itself that
it no longer leads. A session advisory lock would know neither.
"""

from __future__ import annotations

import logging
import os
import random
import threading
from typing import TYPE_CHECKING

from notifier.clock import steady
from notifier.sweeps.line import BackOff, hear, own_line, time_boxed

if TYPE_CHECKING:
    from collections.abc import Callable

    from notifier.store.database import Database
    from notifier.sweeps.line import Connection

log = logging.getLogger(__name__)

LEASE_NAME = "scheduler"
CHANNEL = "notifier_leader"
SLICE_S = 0.1
"""How soon a thread that listens notices that it should stop."""

# A lease is free when it has run out, and also when it reaches farther than anyone grants:
# after a failover to a server whose clock is behind, or an edit by hand, a dead holder's
# lease would otherwise stand for hours.
TAKE = """
    INSERT INTO leader AS held (name, owner, epoch, until)
    VALUES (%(name)s, %(owner)s, 1, db_now() + make_interval(secs => %(ttl)s))
    ON CONFLICT (name) DO UPDATE
       SET owner = excluded.owner, epoch = held.epoch + 1,
           until = db_now() + make_interval(secs => %(ttl)s)
     WHERE held.until < db_now()
        OR held.until > db_now() + make_interval(secs => 4 * %(ttl)s)
    RETURNING epoch
"""
RENEW = """
    UPDATE leader SET until = db_now() + make_interval(secs => %(ttl)s)
     WHERE name = %(name)s AND owner = %(owner)s AND epoch = %(epoch)s AND until > db_now()
"""
RESIGN = """
    UPDATE leader SET until = db_now() - interval '1 second'
     WHERE name = %(name)s AND owner = %(owner)s AND epoch = %(epoch)s
"""


class Leader:
    """One process's part in the election.

    `owner` must be new at every process start. `ttl` is the life of the lease in seconds,
    renewed every `renew_every` seconds (default a third of it); followers look every `poll`
    seconds, give or take a fifth, and at once when a leader resigns.
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        ttl: float = 15.0,
        *,
        renew_every: float | None = None,
        poll: float = 1.0,
    ) -> None:
        self.owner = owner
        self._database = database
        self._ttl = ttl
        self._margin = min(1.0, ttl / 5)
        self._renew_every = ttl / 3 if renew_every is None else renew_every
        self._poll = poll
        self._pid = os.getpid()
        self._term: tuple[int, float, float] | None = None
        self._step_down = threading.Event()

    @property
    def epoch(self) -> int | None:
        """The number of the term that this process leads, None while it does not lead."""
        term = self._term
        return term[0] if term is not None and self.is_leader() else None

    def is_leader(self) -> bool:
        """Whether this process may act as leader at this instant; asks nobody."""
        term = self._term
        return term is not None and steady() < term[1] and os.getpid() == self._pid

    def led_for_s(self) -> float:
        """Seconds since this process won its present term; 0 while it does not lead."""
        term = self._term
        return steady() - term[2] if term is not None and self.is_leader() else 0.0

    def step_down(self) -> None:
        """Give the lease up soon, and let another process win it if there is one."""
        self._step_down.set()

    def run(
        self,
        on_gain: Callable[[], None],
        on_loss: Callable[[], None],
        stop_event: threading.Event,
    ) -> None:
        """Take part until `stop_event`; then stop leading, resign and return.

        `on_gain` and `on_loss` are called in this thread, always in turn; `on_loss` also
        after an `on_gain` that failed. Trouble with the database never ends the loop.
        """
        back_off = BackOff()
        while not stop_event.is_set():
            try:
                won = self._win(stop_event)
                back_off.reset()
            except Exception as error:  # noqa: BLE001 - the election outlives any trouble
                log.warning("election interrupted: %s", type(error).__name__)
                back_off.pause(stop_event)
                continue
            if won:
                self._lead(on_gain, on_loss, stop_event)

    def _win(self, stop: threading.Event) -> bool:
        """Follow until the lease is ours; False when told to stop."""
        if self._take():
            return True
        with own_line(self._database) as line:
            hear(line, CHANNEL)
            while not stop.is_set():
                if self._take():
                    return True
                self._follow(line, stop)
        return False

    def _take(self) -> bool:
        asked_at = steady()
        with self._database.connection() as connection, time_boxed(connection, self._ttl / 2):
            row = connection.execute(
                TAKE, {"name": LEASE_NAME, "owner": self.owner, "ttl": self._ttl}
            ).fetchone()
        if row is None:
            return False
        self._step_down.clear()
        self._term = (int(row["epoch"]), asked_at + self._ttl - self._margin, asked_at)
        return True

    def _follow(self, line: Connection, stop: threading.Event) -> None:
        """Wait for the next look: a jittered poll, or a resignation heard."""
        until = steady() + self._poll * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
        while not stop.is_set() and (left := until - steady()) > 0:
            if list(line.notifies(timeout=min(left, SLICE_S), stop_after=1)):
                stop.wait(random.uniform(0, 0.05))  # noqa: S311 - so that not all bid at once
                return

    def _lead(
        self,
        on_gain: Callable[[], None],
        on_loss: Callable[[], None],
        stop: threading.Event,
    ) -> None:
        log.info("leading, term %s", self.epoch)
        gave_up = False
        try:
            on_gain()
            self._hold(stop)
            gave_up = self._step_down.is_set()
        except Exception:
            log.exception("could not start to lead")
            gave_up = True
        try:
            on_loss()
        except Exception:
            log.exception("could not stop leading cleanly")
        self._resign()
        if gave_up:
            # Whoever gave up lets the others try first.
            stop.wait(min(2 * self._poll, self._ttl))

    def _hold(self, stop: threading.Event) -> None:
        """Renew until the lease is lost, given up, or no longer wanted."""
        back_off = BackOff(0.05, 0.5)
        pause = self._renew_every
        while not self._wait(pause, stop):
            try:
                if not self._renew():
                    return
            except Exception as error:  # noqa: BLE001 - tried again until the local deadline
                log.warning("lease not renewed: %s", type(error).__name__)
                back_off.pause(stop)
                pause = 0.0
            else:
                back_off.reset()
                pause = self._renew_every

    def _renew(self) -> bool:
        term = self._term
        if term is None:
            return False
        asked_at = steady()
        with self._database.connection() as connection, time_boxed(connection, self._ttl / 3):
            changed = connection.execute(RENEW, self._terms(term[0]) | {"ttl": self._ttl}).rowcount
        if changed != 1 or not self.is_leader():
            # Late by the local clock counts as lost even where the row says otherwise.
            return False
        self._term = (term[0], asked_at + self._ttl - self._margin, term[2])
        return True

    def _wait(self, seconds: float, stop: threading.Event) -> bool:
        """Sleep through the time between renewals; True when leading should end."""
        until = steady() + seconds
        while self.is_leader() and not stop.is_set() and not self._step_down.is_set():
            left = until - steady()
            if left <= 0:
                return False
            stop.wait(min(left, SLICE_S))
        return True

    def _resign(self) -> None:
        term, self._term = self._term, None
        if term is None:
            return
        log.info("no longer leading, term %s", term[0])
        try:
            with self._database.connection(timeout=1.0) as connection:
                self._say_so(connection, term[0])
        except Exception as error:  # noqa: BLE001 - the lease then runs out by itself
            log.warning("lease not given back: %s", type(error).__name__)

    def _say_so(self, connection: Connection, epoch: int) -> None:
        with time_boxed(connection, self._ttl / 3):
            if connection.execute(RESIGN, self._terms(epoch)).rowcount == 1:
                connection.execute(f"NOTIFY {CHANNEL}")

    def _terms(self, epoch: int) -> dict[str, object]:
        return {"name": LEASE_NAME, "owner": self.owner, "epoch": epoch}
