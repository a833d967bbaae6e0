"""Seeing from outside that a backend waits: there is no event for it, so it is asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import psycopg

PATIENCE_S = 10.0
KILL = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
BLOCKED = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
       AND cardinality(pg_blocking_pids(pid)) > 0
"""


class Watch:
    """A connection of its own that asks the server what the others are waiting for."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def until_blocked(self, number: int = 1) -> None:
        """Wait until `number` backends of this database stand before a lock."""
        self._until(lambda: self._one(BLOCKED) >= number, f"{number} blocked")

    def kill_who_waits(self) -> None:
        """Kill the backends that stand before a lock, and wait until they are gone."""
        killed = self._connection.execute(KILL).fetchall()
        assert killed
        assert all(gone for (gone,) in killed)

    def deadlocks(self) -> int:
        """Deadlocks that the server broke up in this database."""
        self._one("SELECT pg_stat_clear_snapshot()")
        return int(
            self._one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        )

    def close(self) -> None:
        self._connection.close()

    def _one(self, query: str) -> Any:
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return row[0]

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, f"not {what} after {PATIENCE_S} s"
            time.sleep(0.005)


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Run all jobs in threads released at the same moment; their results, or their first fault."""
    gate = threading.Barrier(len(jobs))
    futures = [begin(lambda job=job: (gate.wait(PATIENCE_S), job())[1]) for job in jobs]  # type: ignore[misc]
    return [future.result(PATIENCE_S * 3) for future in futures]


def begin(job: Callable[[], Any]) -> Future[Any]:
    """Run `job` in a thread of its own; the future has what becomes of it."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(job())
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
