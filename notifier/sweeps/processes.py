"""Which processes of the product run, told by themselves.

A row per process start, refreshed every few seconds. Nothing decides anything by these rows;
they are for people (`notifier.domain.heartbeat` says how they are read).
"""

from __future__ import annotations

import os
import secrets
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

KEPT_AFTER_STOP_S = 3600.0
KEPT_SILENT_S = 24 * 3600.0

BEAT = """
    INSERT INTO process (owner, host, pid, workers, version, started_at, seen_at)
    SELECT %(owner)s, %(host)s, %(pid)s, %(workers)s, %(version)s, at, at
      FROM (SELECT db_now() AS at) AS clock
    ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at, stopped_at = NULL
"""
LEAVE = "UPDATE process SET stopped_at = db_now(), seen_at = db_now() WHERE owner = %(owner)s"
PRUNE = """
    DELETE FROM process
     WHERE stopped_at < db_now() - make_interval(secs => %(stopped)s)
        OR seen_at < db_now() - make_interval(secs => %(silent)s)
"""


def owner_name() -> str:
    """A name that no other process start ever had: host, pid and a random part."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


class Heartbeat:
    """One process's row. `owner` comes from `owner_name`, taken after any fork."""

    def __init__(self, owner: str, *, workers: int, version: str) -> None:
        self.owner = owner
        self._values = {
            "owner": owner,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "workers": workers,
            "version": version,
        }

    def beat(self, connection: Connection) -> None:
        """Say that this process lives; the first time also that it started."""
        connection.execute(BEAT, self._values)

    def leave(self, connection: Connection) -> None:
        """Say that this process stops cleanly."""
        connection.execute(LEAVE, {"owner": self.owner})


def prune(connection: Connection) -> int:
    """Remove rows of processes that stopped an hour ago or fell silent a day ago."""
    return connection.execute(
        PRUNE, {"stopped": KEPT_AFTER_STOP_S, "silent": KEPT_SILENT_S}
    ).rowcount
