"""These tests change rows only, so they share one database, emptied before each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notifier.store.embedded import EmbeddedServer
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.stories import Story, begin_story
from tests.db.recycled import Recycled, recycled_database
from tests.db.rig import BOTH


@pytest.fixture(scope="session")
def recycled(postgres: EmbeddedServer) -> Iterator[Recycled]:
    with recycled_database(postgres) as kept:
        yield kept


@pytest.fixture
def database_url(recycled: Recycled) -> str:
    recycled.empty()
    return recycled.url


@pytest.fixture
def told(make_rig: MakeRig, clock: Clock) -> Story:
    """A notice with its email queued and a text in reserve."""
    return begin_story(make_rig(channels=BOTH, reports=True), clock)
