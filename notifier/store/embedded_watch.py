"""Sees to it that an embedded Postgres runs for as long as the process that owns it.

One that died is started again, at once the first time; one that keeps dying, or will not start,
after waits that double up to a limit. What was seen lies in memory shared with the children, so
that the one that answers `/readyz` can tell.
"""

from __future__ import annotations

import ctypes
import subprocess
import threading
from multiprocessing.sharedctypes import RawValue
from typing import Any, ClassVar, Final

from notifier.clock import steady
from notifier.logs import fault_fields, log
from notifier.store.embedded import EmbeddedServer
from notifier.store.embedded_ground import EmbeddedPostgresError

LOOK_EVERY_S: Final = 0.5
FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 30.0
HELD_S: Final = 60.0
"""A server that ran for as long had been started well: when it dies, waits begin anew."""


class _Seen(ctypes.Structure):
    """Deaths so far, when the last one was (steady seconds), and starts that failed since."""

    _fields_: ClassVar = [
        ("deaths", ctypes.c_uint32),
        ("died_at", ctypes.c_double),
        ("runs", ctypes.c_bool),
        ("failed", ctypes.c_uint32),
    ]


class EmbeddedWatch:
    """Watches one server; make it before any fork, and call `start` after the last."""

    def __init__(
        self,
        server: EmbeddedServer,
        *,
        first_wait_s: float = FIRST_WAIT_S,
        longest_wait_s: float = LONGEST_WAIT_S,
    ) -> None:
        self._server = server
        self._first_wait_s, self._longest_wait_s = first_wait_s, longest_wait_s
        self._seen: Any = RawValue(_Seen, 0, 0.0, True, 0)
        self._tries = 0
        self._started_at = steady()
        self._stopping = threading.Event()

    def start(self) -> None:
        """Watch from now on, in a thread of its own."""
        threading.Thread(target=self._watch, name="embedded-postgres", daemon=True).start()

    def stop(self) -> None:
        """Start it no more. A start under way comes to its end."""
        self._stopping.set()

    def report(self) -> tuple[bool, str]:
        """Whether it runs, and since when it does not or how often it had to be started again."""
        seen = self._seen
        ago_s = steady() - seen.died_at
        if not seen.runs:
            return False, f"died {ago_s:.0f} s ago, {seen.failed} starts failed since"
        if seen.deaths:
            return True, f"runs; died {seen.deaths} times, the last time {ago_s:.0f} s ago"
        return True, "runs"

    def _watch(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            try:
                if not self._server.runs():
                    self._died()
                    self._bring_back()
            except Exception as error:  # noqa: BLE001 - the watch must outlive any fault
                log.error("postgres_unwatched", **fault_fields(error))

    def _died(self) -> None:
        if steady() - self._started_at > HELD_S:
            self._tries = 0
        self._seen.died_at, self._seen.runs, self._seen.failed = steady(), False, 0
        self._seen.deaths += 1
        log.error("postgres_died", pid=self._server.pid)

    def _bring_back(self) -> None:
        while not self._stopping.wait(self._wait_s()):
            self._tries += 1
            try:
                self._server.start_again()
            except (EmbeddedPostgresError, OSError, subprocess.SubprocessError) as error:
                self._seen.failed += 1
                log.error("postgres_not_started", attempt=self._tries, **fault_fields(error))
                continue
            self._started_at = steady()
            self._seen.runs = True
            log.warning("postgres_started_again", pid=self._server.pid, attempt=self._tries)
            return

    def _wait_s(self) -> float:
        """Seconds before the next start: none for the first one in a row."""
        if self._tries == 0:
            return 0.0
        return float(min(self._first_wait_s * 2 ** (self._tries - 1), self._longest_wait_s))
