"""Ends what has run out of time, and decides fallbacks whose moment has come.

Both are the rules of the desk and nothing else: to open a notice's book is to have them asked.
A late sweep is never a hole, because every start compares the stop time itself.
"""

from __future__ import annotations

from notifier.flow.batches import each_notice
from notifier.flow.desk import Desk
from notifier.store.database import PooledConnection
from notifier.store.reads import due


def expire(desk: Desk, connection: PooledConnection) -> int:
    """Close one batch of deliveries whose time is up; returns how many notices were looked at."""
    return each_notice(desk, connection, due.over(connection))


def decide_fallbacks(desk: Desk, connection: PooledConnection) -> int:
    """Ask the rules for one batch of notices whose fallback time has come."""
    return each_notice(desk, connection, due.fallback_due(connection))
