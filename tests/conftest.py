"""What every test may ask for, and what none may do: leave the machine, or ignore a warning."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import hypothesis
import pytest

from notifier.store.database import Database
from setup.browser import find_browser
from tests import database as databases
from tests import network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notifier.store.embedded import EmbeddedServer

# The product's processes are started hundreds of times: without compiled code each of these
# starts would take twice the work.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)

# How long an example takes says more about the machine's other work than about the product.
SLOW_IS_NO_FAULT = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("local", deadline=None, suppress_health_check=SLOW_IS_NO_FAULT)
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=SLOW_IS_NO_FAULT,
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure() -> None:
    """Runs in the controller before its workers start, and again in each worker."""
    databases.choose_folder()
    network.keep_to_loopback()


def pytest_unconfigure(config: pytest.Config) -> None:
    """The controller, or the only process, clears away the server that the run used."""
    if not hasattr(config, "workerinput"):
        databases.remove_server()


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, object]:
    """Drive the machine's own Chromium (`make test` sees to it), quiet and offline."""
    found = find_browser()
    assert found, "no Chromium: run make browser, or set CHROMIUM"
    return {"executable_path": found, "args": list(CHROMIUM_ARGUMENTS)}


@pytest.fixture(scope="session")
def browser_context_args() -> dict[str, object]:
    """A reader in UTC on a laptop; a test that wants another asks for its own context."""
    return {
        "locale": "en-GB",
        "timezone_id": "UTC",
        "viewport": {"width": 1280, "height": 900},
    }


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedServer]:
    """The run's Postgres, shared by all workers, with the migrated template in it."""
    server = databases.run_server()
    databases.ensure_template(server)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_url(postgres: EmbeddedServer) -> str:
    """The run's Postgres as its superuser, for tests that make databases or roles."""
    return postgres.superuser_url


@pytest.fixture
def database_url(postgres: EmbeddedServer) -> Iterator[str]:
    """A migrated database of this test's own, for a process that the test starts."""
    with databases.fresh_database(postgres) as url:
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The same database through the product's own pool, under the test's clock."""
    opened = Database(database_url, search_path="test_clock,notifier")
    yield opened
    opened.close()


@pytest.fixture
def clock(database_url: str) -> Iterator[databases.Clock]:
    """The clock of this test's database: `freeze`, `advance`, `now`."""
    held = databases.Clock(database_url)
    yield held
    held.close()
