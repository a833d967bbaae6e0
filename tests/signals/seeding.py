"""Counts and samples written straight into their tables: for what reads them alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from notifier.store import rollups

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

MINUTE = timedelta(minutes=1)


def span(connection: PooledConnection, began: datetime, until: datetime) -> None:
    """A time that was counted without a hole."""
    connection.execute("INSERT INTO rollup_span VALUES (%s, %s)", [began, until])


def count(connection: PooledConnection, at: datetime, signal: str, n: int, **by: str) -> None:
    """A number in its minute; `by` may name channel, provider, reason, region and template."""
    row = {"channel": "", "provider": "", "reason": "", "region": "", "template": ""} | by
    connection.execute(
        f"""WITH summed AS (
                SELECT date_trunc('minute', %(at)s::timestamptz) AS minute, %(signal)s AS signal,
                       %(channel)s AS channel, %(provider)s AS provider, %(reason)s AS reason,
                       %(region)s AS region, %(template)s AS template, %(n)s AS n),
            {rollups.KEPT} SELECT""",
        row | {"at": at, "signal": signal, "n": n},
    )


def level(connection: PooledConnection, at: datetime, pending: int = 0, unknown: int = 0) -> None:
    """A sampled minute."""
    connection.execute(
        "INSERT INTO rollup_level VALUES (date_trunc('minute', %s::timestamptz), %s, %s)",
        [at, pending, unknown],
    )


def queue(connection: PooledConnection, at: datetime, p95: float, **by: str) -> None:
    """How long the queue waited in a minute, under one filter (default: all)."""
    row: Mapping[str, object] = {"channel": "*", "template": "*", "region": "*"} | by
    connection.execute(
        """INSERT INTO rollup_queue
           VALUES (date_trunc('minute', %(at)s::timestamptz), %(channel)s, %(template)s,
                   %(region)s, 3, %(p95)s / 2, %(p95)s, %(p95)s * 2)""",
        {**row, "at": at, "p95": p95},
    )
