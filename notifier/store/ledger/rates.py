"""Counts admissions against the rate over all processes: one row a second, in the database."""

from __future__ import annotations

from typing import Any, Final

import psycopg

Row = dict[str, Any]

COUNT: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now)
INSERT INTO rate_window AS w (name, window_at, hits)
SELECT %(name)s, date_trunc('second', now), 1 FROM clock
ON CONFLICT (name, window_at) DO UPDATE SET hits = w.hits + 1
RETURNING hits, extract(epoch FROM window_at + interval '1 s' - db_now()) AS left_s
"""
FORGET: Final = "DELETE FROM rate_window WHERE window_at < db_now() - interval '1 hour'"


def wait_s(connection: psycopg.Connection[Row], name: str, per_second: float) -> float | None:
    """Count one hit of `name`; seconds to wait where it is one too many, else None."""
    row = connection.execute(COUNT, {"name": name}).fetchone()
    if row is None or row["hits"] <= per_second:
        return None
    return max(float(row["left_s"]), 0.001)


def forget(connection: psycopg.Connection[Row]) -> int:
    """Drop windows that nobody counts against any more; how many."""
    return connection.execute(FORGET).rowcount
