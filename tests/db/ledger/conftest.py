"""These tests change rows only, so they share one database, emptied before each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notifier.store.embedded import EmbeddedServer
from tests.db.recycled import Recycled, recycled_database


@pytest.fixture(scope="session")
def recycled(postgres: EmbeddedServer) -> Iterator[Recycled]:
    with recycled_database(postgres) as kept:
        yield kept


@pytest.fixture
def database_url(recycled: Recycled) -> str:
    recycled.empty()
    return recycled.url
