"""The test's own Postgres: one server for the whole run, one fresh database for each test."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from notifier.store import schema
from notifier.store.database import Database
from notifier.store.embedded import EmbeddedServer, ensure_running, find_postmaster
from notifier.store.embedded_cluster import ROLE
from notifier.store.embedded_ground import prepare_ground

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER_VARIABLE = "TESTS_POSTGRES_FOLDER"
TEMPLATE = "migrated_template"
_made_here: list[str] = []
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Only a crash of the machine would need what these give; tests that kill the server do not."""

CLOCK_SQL = """
    CREATE SCHEMA test_clock;
    CREATE TABLE test_clock.setting (
        one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
        fixed   timestamptz,
        shift   interval NOT NULL DEFAULT '0'
    );
    INSERT INTO test_clock.setting DEFAULT VALUES;
    CREATE FUNCTION test_clock.db_now() RETURNS timestamptz
        LANGUAGE sql VOLATILE PARALLEL SAFE
        AS $$ SELECT coalesce(fixed, pg_catalog.clock_timestamp()) + shift
              FROM test_clock.setting $$;
"""


class Clock:
    """The database's clock, in the hand of a test; every connection sees it at once."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def freeze(self, at: datetime | None = None) -> datetime:
        """Stand still at this instant (default: now) and return it."""
        instant = at or self.now()
        self._connection.execute("UPDATE test_clock.setting SET fixed = %s, shift = '0'", [instant])
        return instant

    def advance(self, seconds: float) -> datetime:
        """Go forward, frozen or running, and return the new time."""
        self._connection.execute(
            "UPDATE test_clock.setting SET shift = shift + %s", [timedelta(seconds=seconds)]
        )
        return self.now()

    def now(self) -> datetime:
        """What every statement of the product would read now."""
        row = self._connection.execute("SELECT test_clock.db_now()").fetchone()
        assert row is not None
        instant: datetime = row[0]
        return instant

    def close(self) -> None:
        """Hang up; the setting stays."""
        self._connection.close()


@contextmanager
def rewriting(connection: psycopg.Connection[Any], table: str) -> Iterator[None]:
    """Let this connection change what `table` holds for good, as no step of the product does."""
    trigger = f"{table}_never_rewritten"
    connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
    yield
    connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")


def choose_folder() -> None:
    """Name the folder of the run's server, once, before any worker process starts."""
    if FOLDER_VARIABLE not in os.environ:
        os.environ[FOLDER_VARIABLE] = str(make_folder())
        _made_here.append(os.environ[FOLDER_VARIABLE])


def make_folder() -> Path:
    """A new folder that the server's own user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="notifier-tests-"))
    folder.chmod(0o711)
    return folder


def run_server() -> EmbeddedServer:
    """Start the run's server, or join it."""
    return ensure_running(Path(os.environ[FOLDER_VARIABLE]), settings=FAST)


def remove_server() -> None:
    """Remove the run's folder, and the server in it if a dead worker left it running.

    A folder that was named from outside is left to whoever named it.
    """
    folder = Path(os.environ[FOLDER_VARIABLE])
    if str(folder) not in _made_here:
        return
    if (folder / "postgres").exists() and find_postmaster(prepare_ground(folder)):
        run_server().stop()
    shutil.rmtree(folder)
    del os.environ[FOLDER_VARIABLE]


def ensure_template(server: EmbeddedServer) -> None:
    """Make the migrated template database, unless another worker already did."""
    with psycopg.connect(server.superuser_url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        if connection.execute(
            "SELECT 1 FROM pg_database WHERE datname = %s AND datistemplate", [TEMPLATE]
        ).fetchone():
            return
        connection.execute(create_database(TEMPLATE))
        fill_template(url_of(server, TEMPLATE))
        connection.execute(
            sql.SQL("ALTER DATABASE {} IS_TEMPLATE true").format(sql.Identifier(TEMPLATE))
        )


def fill_template(url: str) -> None:
    """Everything that each test's database starts with: the real schema, and a clock."""
    schema.upgrade(Database(url).sqlalchemy_url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(CLOCK_SQL)


@contextmanager
def fresh_database(server: EmbeddedServer) -> Iterator[str]:
    """A migrated database of its own; gives its URL and removes it afterwards."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server.superuser_url, autocommit=True) as connection:
        connection.execute(create_database(name, TEMPLATE))
        try:
            yield url_of(server, name)
        finally:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def create_database(name: str, template: str = "template1") -> sql.Composed:
    """The statement that makes a database owned by the product's role."""
    return sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY FILE_COPY").format(
        sql.Identifier(name), sql.Identifier(ROLE), sql.Identifier(template)
    )


def url_of(server: EmbeddedServer, name: str) -> str:
    """The URL of one of the server's databases, as the product's role."""
    return urlsplit(server.url)._replace(path=f"/{name}").geturl()


def database_name(url: str) -> str:
    """The database that a URL leads to."""
    return str(conninfo_to_dict(url)["dbname"])
