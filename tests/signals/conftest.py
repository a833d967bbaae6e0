"""A rig over a database emptied before each test, and the sweep that counts what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from notifier.signals import rollups
from notifier.signals.dns import Resolver
from notifier.store.database import Database
from notifier.store.embedded import EmbeddedServer
from tests.database import Clock
from tests.db.recycled import Recycled, recycled_database
from tests.db.rig import Rig
from tests.db.test_foundation import NOON
from tests.dns_server import Zone, running
from tests.signals.asking_dns import Ask

Collect = Callable[[], int]


@pytest.fixture(scope="session")
def recycled(postgres: EmbeddedServer) -> Iterator[Recycled]:
    with recycled_database(postgres) as kept:
        yield kept


@pytest.fixture
def database_url(recycled: Recycled) -> str:
    recycled.empty()
    return recycled.url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, search_path="test_clock,notifier")
    yield opened
    opened.close()


@pytest.fixture
def rig(database: Database) -> Rig:
    """One process that sends email and, where there is consent, text messages."""
    return Rig(database)


@pytest.fixture
def noon(clock: Clock) -> datetime:
    """The clock stands still at noon; nothing was counted before."""
    return clock.freeze(NOON)


@pytest.fixture
def collect(rig: Rig, noon: datetime, clock: Clock) -> Collect:
    """Counts all that is new, a moment later; the first run has begun the span already."""

    def run() -> int:
        clock.advance(1)
        with rig.database.connection() as connection:
            done = total = rollups.collect(rig.shelf, connection)
            while done:
                done = rollups.collect(rig.shelf, connection)
                total += done
        return total

    run()
    return run


@pytest.fixture
def zone() -> Zone:
    return Zone()


@pytest.fixture
def ask(zone: Zone) -> Iterator[Ask]:
    """A fresh check; patient but for names that are silent."""
    with running(zone) as port:
        yield lambda: Resolver([("127.0.0.1", port)], 0.05 if zone.silent else 30.0, 60.0)


def counted(rig: Rig, signal: str) -> dict[tuple[str, ...], int]:
    """Counts of one signal by channel, provider and reason, over all minutes."""
    rows = rig.rows(
        """SELECT channel, provider, reason, sum(n)::int AS n FROM rollup_count
            WHERE signal = %s GROUP BY 1, 2, 3""",
        signal,
    )
    return {(row["channel"], row["provider"], row["reason"]): row["n"] for row in rows}


def total(rig: Rig, signal: str) -> int:
    return sum(counted(rig, signal).values())


def values_of(rig: Rig, query: str, *values: Any) -> list[Any]:
    """The first column of each row."""
    return [next(iter(row.values())) for row in rig.rows(query, *values)]
