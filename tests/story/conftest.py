"""One running product for the stories that can share it, and ways to get one alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from notifier.store.embedded import EmbeddedServer
from tests.database import fresh_database
from tests.running import RunningApp, Surroundings, surroundings

StartAlone = Callable[..., RunningApp]


@pytest.fixture(scope="session")
def app(postgres: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApp]:
    """A process that many tests use: no halt of all, no pause of a provider in here."""
    folder = tmp_path_factory.mktemp("story")
    with (
        fresh_database(postgres) as url,
        surroundings(url, folder) as around,
        RunningApp(around) as running,
    ):
        yield running


@pytest.fixture
def around(app: RunningApp) -> Surroundings:
    """What stands around the shared process."""
    return app.around


@pytest.fixture
def start_alone(database_url: str, tmp_path: Path) -> Iterator[StartAlone]:
    """Starts a process of the test's own, in surroundings of its own (`surroundings`)."""
    with ExitStack() as stack:

        def start(**wishes: object) -> RunningApp:
            around = stack.enter_context(surroundings(database_url, tmp_path, **wishes))  # type: ignore[arg-type]
            return stack.enter_context(RunningApp(around))

        yield start
