"""A connection that one thread keeps for itself, and how it is kept from waiting for ever.

The server's own time limits end a slow statement, and TCP ends a silent peer; neither helps
where something between the two keeps the connection open and forwards nothing.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg
    from psycopg.rows import DictRow

    from notifier.store.database import Database

    Connection = psycopg.Connection[DictRow]

ANSWER_LIMIT_S = 8.0
"""How long a trivial statement may go unanswered before its connection is cut."""


@contextmanager
def own_line(database: Database) -> Iterator[Connection]:
    """A connection for long use, from the pool; it goes back without any LISTEN left on it."""
    with database.connection() as connection:
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if not connection.pooled:
            connection.execute("UNLISTEN *")


def hear(line: Connection, channel: str) -> bool:
    """Listen to a channel; False where nothing can be heard on this line.

    Behind a pooler the session that listens is not ours a moment later: what it hears goes to
    nobody, or to somebody else. Whoever listens polls as well.
    """
    if getattr(line, "pooled", False):
        return False
    with time_boxed(line):
        line.execute(f"LISTEN {channel}")
    return True


@contextmanager
def time_boxed(connection: Connection, limit_s: float = ANSWER_LIMIT_S) -> Iterator[None]:
    """Cut the connection when the block has not ended in time.

    The statement that waits then fails with `psycopg.OperationalError`, as if the server had
    gone.
    """
    cutter = threading.Timer(limit_s, _cut, [connection])
    cutter.daemon = True
    cutter.start()
    try:
        yield
    finally:
        cutter.cancel()


def _cut(connection: Connection) -> None:
    # A duplicate, because shutting the socket down must not close libpq's own descriptor.
    try:
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
    except Exception:  # noqa: BLE001 - it is gone already, which is what was wanted
        return
    with duplicate:
        try:
            duplicate.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


class BackOff:
    """Pauses between tries: doubling from `first_s` to `last_s`, each cut by up to a half."""

    def __init__(self, first_s: float = 0.1, last_s: float = 2.0) -> None:
        self._first_s = first_s
        self._last_s = last_s
        self._next_s = first_s

    def pause(self, stop: threading.Event) -> None:
        """Wait out the next pause, or until `stop`."""
        stop.wait(self._next_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
        self._next_s = min(self._next_s * 2, self._last_s)

    def reset(self) -> None:
        """The last try worked."""
        self._next_s = self._first_s
