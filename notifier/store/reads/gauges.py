"""Ages and counts for the metrics, read at scrape time so that they rise when all else is dead.

Every count walks a partial index over open work; none counts history.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg

from notifier.metrics import Reading
from notifier.store.database import Database
from notifier.store.reads.trail_checkpoints import newest

Row = dict[str, Any]

QUEUES: Final = """
SELECT channel, count(*) AS waiting,
       coalesce(extract(epoch FROM db_now() - min(due_at)), 0) AS oldest_s,
       coalesce(extract(epoch FROM min(stop_at) - db_now()), 0) AS least_left_s
  FROM delivery WHERE state = 'queued' AND due_at <= db_now() GROUP BY channel
"""
UNKNOWN: Final = """
SELECT channel, count(*) AS unknown,
       coalesce(extract(epoch FROM db_now() - min(changed_at)), 0) AS oldest_s
  FROM delivery WHERE state = 'unknown' GROUP BY channel
"""
LEASES: Final = """
SELECT count(*) AS held, count(*) FILTER (WHERE lease_until < db_now()) AS lapsed
  FROM delivery WHERE lease_owner IS NOT NULL
"""
SWEEPS: Final = """
SELECT name, extract(epoch FROM db_now() - coalesce(finished_at, started_at)) AS age_s
  FROM sweep_run
"""
HALTS: Final = "SELECT count(*) AS halts FROM halt WHERE released_at IS NULL"
CHANNELS: Final = ("email", "sms")


def readings(connection: psycopg.Connection[Row]) -> Iterator[Reading]:
    """One reading for each gauge and label; a channel without work reads nought."""
    yield from _per_channel(
        connection,
        QUEUES,
        {
            "waiting": ("queue_deliveries", "Deliveries that are due and not claimed"),
            "oldest_s": ("queue_oldest_seconds", "Age of the oldest due delivery"),
            "least_left_s": ("queue_least_left_seconds", "Least time to a stop in the queue"),
        },
    )
    yield from _per_channel(
        connection,
        UNKNOWN,
        {
            "unknown": ("unknown_deliveries", "Deliveries with an unknown outcome"),
            "oldest_s": ("unknown_oldest_seconds", "Age of the oldest unknown outcome"),
        },
    )
    leases = connection.execute(LEASES).fetchone() or {"held": 0, "lapsed": 0}
    yield Reading("leases_held", "Leases in force or lapsed", float(leases["held"]))
    yield Reading("leases_lapsed", "Leases that ran out", float(leases["lapsed"]))
    for row in connection.execute(SWEEPS):
        meaning = "Seconds since the sweep last ended well"
        label = ("sweep", row["name"])
        yield Reading("sweep_age_seconds", meaning, float(row["age_s"] or 0), label)
    halts = connection.execute(HALTS).fetchone() or {"halts": 0}
    yield Reading("halts_engaged", "Halts that stand", float(halts["halts"]))
    if last := newest(connection):
        meaning = "Age of the trail's last checkpoint; what changed since is not protected yet"
        yield Reading("checkpoint_age_seconds", meaning, last.age_s)


def read(database: Database) -> list[Reading]:
    """All readings, taken now."""
    with database.connection(timeout=1.0) as connection:
        return list(readings(connection))


def _per_channel(
    connection: psycopg.Connection[Row], statement: str, names: dict[str, tuple[str, str]]
) -> Iterator[Reading]:
    rows = {row["channel"]: row for row in connection.execute(statement)}
    for column, (name, meaning) in names.items():
        for channel in CHANNELS:
            value = float(rows[channel][column]) if channel in rows else 0.0
            yield Reading(name, meaning, value, ("channel", channel))
