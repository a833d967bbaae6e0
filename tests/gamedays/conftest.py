"""A game day on a database emptied before each."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from notifier.store.database import Database
from tests.database import Clock
from tests.db.rig import Rig
from tests.gamedays.ground import GameDay
from tests.signals.conftest import database, database_url, recycled

__all__ = ["database", "database_url", "recycled"]

NIGHT = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


@pytest.fixture
def day(database: Database, clock: Clock) -> GameDay:
    """Three in the night, a provider that reports deliveries, and nothing wrong yet."""
    clock.freeze(NIGHT)
    return GameDay(Rig(database, reports=True), clock)
