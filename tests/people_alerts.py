"""Alerts of a test's choice, straight into their table."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from tests.people_seed import database_now, insert

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


def open_alert(
    connection: PooledConnection, rule: str = "queue_age", key: str = "email", **changes: Any
) -> UUID:
    """An alert that was opened two minutes ago and that nobody has in hand."""
    now = database_now(connection)
    row: dict[str, Any] = {
        "episode_id": uuid4(), "rule": rule, "key": key, "state": "open",
        "crossed_at": now - timedelta(minutes=3), "opened_at": now - timedelta(minutes=2),
        "seen_at": now, "value": 75.0, "worst": 90.0, "threshold": 60.0, "unit": "seconds",
        "affected": 12, "life_s": 600.0,
    }  # fmt: skip
    row |= changes
    insert(connection, "alert_episode", {"threshold_now": row["threshold"]} | row)
    found: UUID = row["episode_id"]
    return found


def ended_alert(
    connection: PooledConnection, rule: str = "expired", key: str = "", **changes: Any
) -> UUID:
    """One that ended by itself a minute ago and that nobody reviewed."""
    now = database_now(connection)
    ended = {
        "state": "resolved", "resolved_at": now - timedelta(minutes=1), "resolved_by": "rule",
        "value": 0.02, "worst": 0.04, "threshold": 0.005, "unit": "share",
    }  # fmt: skip
    return open_alert(connection, rule, key, **(ended | changes))
