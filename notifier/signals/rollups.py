"""The sweep that keeps what is counted a minute: new rows of the trail, then a sample."""

from __future__ import annotations

from notifier.flow.policies import PolicyShelf
from notifier.store import rollup_samples, rollups
from notifier.store.database import PooledConnection


def collect(shelf: PolicyShelf, connection: PooledConnection) -> int:
    """Count one batch and sample; how many rows were counted, nought when it was not our turn."""
    counted = rollups.count_new(connection)
    if counted is None:
        return 0
    rollup_samples.sample(connection)
    _, policy = shelf.current()
    return counted + rollups.forget(connection, days=policy.retention["rollup_days"])
