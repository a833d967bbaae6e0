"""Keeps personal data, and what was told of alerts, no longer than the policy says."""

from __future__ import annotations

from notifier.flow.policies import PolicyShelf
from notifier.store import alerts
from notifier.store.database import PooledConnection
from notifier.store.ledger import retention


def retain(shelf: PolicyShelf, connection: PooledConnection) -> int:
    """Erase one batch; how many rows went, nought once nothing is over its time."""
    _, policy = shelf.current()
    erased = retention.erase_contacts(connection, days=policy.retention["contact_days"])
    erased += alerts.forget(connection, days=policy.retention["trail_days"])
    return erased + retention.erase_short_lived(connection)
