"""Processes to break, and a Postgres that may be broken."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from notifier.store.embedded import EmbeddedPostgresError, ensure_running
from tests.database import create_database, fill_template, url_of
from tests.running import RunningApp, Surroundings, lives, surroundings, until

Surround = Callable[..., Surroundings]
Run = Callable[..., RunningApp]

CRASHES = {"fsync": "off", "full_page_writes": "off", "max_connections": "100"}
"""A server that is killed loses nothing by these; only the machine's crash would need them."""


class Cluster:
    """A Postgres of its own that tests may kill, stop and start again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.server = ensure_running(folder, settings=CRASHES)

    def kill(self) -> None:
        """As a crash: no session is told, nothing is flushed."""
        os.kill(self.server.pid, signal.SIGKILL)
        until(lambda: not lives(self.server.pid), 10, "the killed server to be gone")

    def stop(self) -> None:
        """As an administrator does (fast): sessions are ended."""
        os.kill(self.server.pid, signal.SIGINT)
        until(lambda: not lives(self.server.pid), 10, "the stopped server to be gone")

    def start(self) -> None:
        """Start it again; it recovers by itself."""
        earlier = self.server
        self.server = ensure_running(self._folder, settings=CRASHES)
        earlier.stop()  # gives up an older share, and stops nothing while the new one is held

    def close(self) -> None:
        """Stop it for good."""
        with suppress(EmbeddedPostgresError):
            self.start()
        self.server.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The Postgres to break, with a migrated template in it."""
    folder = Path(tempfile.mkdtemp(prefix="notifier-chaos-"))
    folder.chmod(0o711)
    broken = Cluster(folder)
    try:
        with psycopg.connect(broken.server.superuser_url, autocommit=True) as connection:
            connection.execute(create_database("migrated_template"))
        fill_template(url_of(broken.server, "migrated_template"))
        yield broken
    finally:
        broken.close()
        shutil.rmtree(folder)


@pytest.fixture
def fragile_url(cluster: Cluster) -> Iterator[str]:
    """A migrated database on the Postgres to break."""
    if not lives(cluster.server.pid):
        cluster.start()
    name = f"chaos_{uuid.uuid4().hex}"
    with psycopg.connect(cluster.server.superuser_url, autocommit=True) as connection:
        connection.execute(create_database(name, "migrated_template"))
    yield url_of(cluster.server, name)
    if not lives(cluster.server.pid):
        cluster.start()
    with psycopg.connect(cluster.server.superuser_url, autocommit=True) as connection:
        drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
        connection.execute(drop)


@pytest.fixture
def surround(tmp_path: Path) -> Iterator[Surround]:
    """Makes surroundings for a database (`tests.running.surroundings`)."""
    with ExitStack() as stack:

        def make(url: str, **wishes: object) -> Surroundings:
            return stack.enter_context(surroundings(url, tmp_path, **wishes))  # type: ignore[arg-type]

        yield make


@pytest.fixture
def run(surround: Surround) -> Iterator[Run]:
    """Starts processes; each is stopped at the end, and must leave nothing behind."""
    with ExitStack() as stack:

        def start(around: Surroundings, **wishes: object) -> RunningApp:
            return stack.enter_context(RunningApp(around, **wishes))  # type: ignore[arg-type]

        yield start
