"""Refused and unreadable callbacks, added up in the process and written at most once a second.

Anybody can post to the callbacks' address, so what a refusal costs is bounded: a number in
memory, and one short statement a second however many there are.
"""

from __future__ import annotations

import threading
from collections import Counter

import psycopg

from notifier.logs import fault_fields, log
from notifier.store import rollups
from notifier.store.database import Database, StoreUnavailable

WRITE_AFTER_S = 1.0


class Refusals:
    """Counts by signal and provider; asks for a connection only while they are written."""

    def __init__(self, database: Database, write_after_s: float = WRITE_AFTER_S) -> None:
        self._database = database
        self._write_after_s = write_after_s
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._timer: threading.Timer | None = None

    def refused(self, provider: str) -> None:
        """Count one; `provider` is the name of a configured provider, never the caller's word."""
        self._count(rollups.REFUSED, provider)

    def unreadable(self, provider: str) -> None:
        """Count one that was genuine and said nothing that could be read."""
        self._count(rollups.UNREADABLE, provider)

    def _count(self, signal: str, provider: str) -> None:
        with self._lock:
            self._counts[signal, provider] += 1
            if self._timer is None:
                self._timer = threading.Timer(self._write_after_s, self.write)
                self._timer.daemon = True
                self._timer.start()

    def write(self) -> None:
        """Write what was added up; what cannot be written now is written with the next."""
        with self._lock:
            counts, self._counts, self._timer = self._counts, Counter(), None
        if not counts:
            return
        try:
            with self._database.connection(timeout=1.0) as connection:
                rollups.add_callbacks(connection, counts)
        except (StoreUnavailable, psycopg.Error) as error:
            log.warning("refusals_not_written", **fault_fields(error))
            with self._lock:
                self._counts += counts

    def close(self) -> None:
        """Write the rest, at the end of the process."""
        with self._lock:
            timer = self._timer
        if timer is not None:
            timer.cancel()
        self.write()
