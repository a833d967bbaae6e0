"""Whether an admission may pass now, counted over all processes."""

from __future__ import annotations

from notifier.store.database import Database
from notifier.store.ledger import rates


def admission_wait_s(database: Database, per_second: float | None) -> float | None:
    """Count this admission; seconds to wait where it is one too many, None where it may pass."""
    if per_second is None:
        return None
    with database.connection() as connection:
        return rates.wait_s(connection, "admission", per_second)
