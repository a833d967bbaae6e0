"""Keeps personal data, details and what was told of alerts no longer than the policy says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from notifier.clock import steady
from notifier.flow.batches import PATIENCE_MS
from notifier.flow.policies import PolicyShelf
from notifier.store import alerts
from notifier.store.database import PooledConnection
from notifier.store.ledger import retention
from notifier.store.ledger.book import PATIENCE

Erase = Callable[[PooledConnection], int]

GO_ON_S: Final = 2.0
"""How long the others go on in a run in which one could not do its part."""


def retain(shelf: PolicyShelf, connection: PooledConnection) -> int:
    """Erase one batch of each kind; how many rows went, nought once nothing is over its time.

    A kind that cannot be erased holds up no other: those go on, and then its error is raised,
    so that the sweep shows as failing.
    """
    _, policy = shelf.current()
    days = policy.retention
    erasing: list[Erase] = [
        partial(retention.erase_contacts, days=days["contact_days"]),
        partial(retention.erase_receipts, days=days["detail_days"]),
        partial(retention.erase_events, days=days["detail_days"]),
        partial(alerts.forget, days=days["trail_days"]),
        retention.erase_strangers,
        retention.erase_short_lived,
    ]
    until, trouble = steady() + GO_ON_S, None
    while True:
        erased, failed = _round(erasing, connection)
        trouble = trouble or failed
        if trouble is None:
            return erased
        if not erased or steady() > until:
            raise trouble


def _round(erasing: list[Erase], connection: PooledConnection) -> tuple[int, Exception | None]:
    """One batch of each; who fails is taken off the list, and the first error is told."""
    erased, trouble = 0, None
    for erase in tuple(erasing):
        try:
            with connection.transaction():
                connection.execute(PATIENCE, [f"{PATIENCE_MS}ms"])
                erased += erase(connection)
        except Exception as error:
            if connection.closed:
                raise
            trouble = trouble or error
            erasing.remove(erase)
    return erased, trouble
