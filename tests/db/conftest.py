"""The flows over the test's database, and a way to see who waits for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from notifier.store.database import Database
from tests.db.rig import Rig
from tests.db.waiting import Watch

MakeRig = Callable[..., Rig]


@pytest.fixture
def make_rig(database_url: str) -> Iterator[MakeRig]:
    """Makes rigs over the same database, each with a pool of its own, as processes have."""
    with ExitStack() as stack:

        def make(size: int = 8, **parts: object) -> Rig:
            database = Database(database_url, size=size, search_path="test_clock,notifier")
            stack.callback(database.close)
            return Rig(database, **parts)  # type: ignore[arg-type]

        yield make


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """One process that sends email."""
    return make_rig()


@pytest.fixture
def watch(database_url: str) -> Iterator[Watch]:
    """Looks at the server from outside."""
    watching = Watch(database_url)
    yield watching
    watching.close()
