"""How a claim loop learns that there is work: at once in this process, soon in the others.

Admission rings after its commit. The loops of the same process wake by an event; the others
by a `NOTIFY` that a thread of its own sends, at most one every 20 ms, because a `NOTIFY`
inside the admission's transaction costs two thirds of the rate at 16 writers. Both are hints:
a loop polls as well.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from notifier.clock import steady
from notifier.store.reads.sweeps import due_to_send
from notifier.sweeps.line import BackOff, hear, own_line, time_boxed

if TYPE_CHECKING:
    from collections.abc import Callable

    from notifier.store.database import Database
    from notifier.sweeps.line import Connection

log = logging.getLogger(__name__)

CHANNEL = "notifier_work"
NOTIFY_EVERY_S = 0.02
KEEPALIVE_EVERY_S = 10.0
SLICE_S = 0.25
NO_PID = 0


def kick(connection: Connection) -> int:
    """Body of the `claim` sweep: wake every process's claim loops if a row is due.

    Gives 0, because the rows are done elsewhere: the runner must not repeat it.
    """
    if due_to_send(connection, limit=1):
        connection.execute(f"NOTIFY {CHANNEL}")
    return 0


class Wakeup:
    """The bell between those who queue work and the claim loops.

    `start` opens two connections for long (one that notifies, one that listens); without it
    the bell works inside this process only.
    """

    def __init__(self, database: Database, *, keepalive_every_s: float = KEEPALIVE_EVERY_S) -> None:
        self._database = database
        self._keepalive_every_s = keepalive_every_s
        self._rung = threading.Condition()
        self._rings = 0
        self._seen = threading.local()
        self._to_tell = threading.Event()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._own_pid = NO_PID
        self._heard_at: float | None = None

    def ring(self) -> None:
        """Work was committed. Takes microseconds, never fails, may be called from any thread."""
        self.ring_here()
        self._to_tell.set()

    def wait(self, timeout: float) -> None:
        """Return at the next ring, or after `timeout` seconds.

        A ring since this thread's last `wait` counts, so a loop that looks for work and then
        waits misses nothing; a thread's first `wait` returns at once if it ever rang.
        """
        with self._rung:
            seen = getattr(self._seen, "rings", 0)
            self._rung.wait_for(lambda: self._rings != seen, timeout)
            self._seen.rings = self._rings

    def start(self) -> None:
        """Tell other processes, and listen to them, until `stop`."""
        if self._threads:
            return
        self._stop.clear()
        for name, target in (("wakeup-notify", self._tell), ("wakeup-listen", self._listen)):
            thread = threading.Thread(target=self._keep_at, args=(target,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Close both connections and let every waiter go."""
        self._stop.set()
        self._to_tell.set()
        self.ring_here()
        for thread in self._threads:
            thread.join(2.0)
        self._threads.clear()

    def silent_s(self) -> float | None:
        """Seconds since the listening connection was last known to work; None while it is down."""
        heard_at = self._heard_at
        return None if heard_at is None else steady() - heard_at

    def ring_here(self) -> None:
        """Wake this process's loops only, such as when one of their threads is idle again."""
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def _keep_at(self, hold: Callable[[Connection, BackOff], None]) -> None:
        """Hold a line of its own for as long as it lasts, again and again."""
        back_off = BackOff()
        while not self._stop.is_set():
            try:
                with own_line(self._database) as line:
                    hold(line, back_off)
            except Exception as error:  # noqa: BLE001 - the loops still poll meanwhile
                log.warning("wake-up line lost: %s", type(error).__name__)
                self._heard_at = None
                back_off.pause(self._stop)

    def _tell(self, line: Connection, back_off: BackOff) -> None:
        self._own_pid = line.info.backend_pid
        while not self._stop.is_set():
            self._to_tell.wait()
            self._to_tell.clear()
            if self._stop.is_set():
                return
            try:
                with time_boxed(line):
                    line.execute(f"NOTIFY {CHANNEL}")
            except Exception:
                self._to_tell.set()
                raise
            back_off.reset()
            self._stop.wait(NOTIFY_EVERY_S)

    def _listen(self, line: Connection, back_off: BackOff) -> None:
        if not hear(line, CHANNEL):
            self._stop.wait()
            return
        back_off.reset()
        # Whatever was said while nobody listened is lost, so there is a full claim first.
        self.ring_here()
        self._heard_at = steady()
        while not self._stop.is_set():
            for notice in line.notifies(timeout=SLICE_S, stop_after=1):
                self._heard_at = steady()
                if notice.pid != self._own_pid:
                    self.ring_here()
            if (self.silent_s() or 0.0) >= self._keepalive_every_s:
                with time_boxed(line):
                    line.execute("SELECT 1")
                self._heard_at = steady()
