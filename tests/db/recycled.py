"""One database for many tests, emptied between them: a new one costs ten times as much.

For tests that change rows only. A test that changes the schema asks for a database of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg

from notifier.store.embedded import EmbeddedServer
from tests import database as databases

TABLES = """
    SELECT format('DELETE FROM notifier.%I', tablename) FROM pg_tables
     WHERE schemaname = 'notifier' AND tablename <> 'alembic_version'
"""
RESET_CLOCK = "UPDATE test_clock.setting SET fixed = NULL, shift = '0'"


class Recycled:
    """A database and, for emptying it past its own guards, the server's superuser in it."""

    def __init__(self, url: str, superuser_url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(superuser_url, autocommit=True)
        self._connection.execute("SET session_replication_role = replica")
        statements = [row[0] for row in self._connection.execute(TABLES)]
        self._empty = "; ".join([*statements, RESET_CLOCK])

    def empty(self) -> None:
        """Leave the schema alone and no row in it."""
        self._connection.execute(self._empty)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def recycled_database(server: EmbeddedServer) -> Iterator[Recycled]:
    """A database of this worker's own for as long as the block lasts."""
    with databases.fresh_database(server) as url:
        path = urlsplit(url).path
        recycled = Recycled(url, urlsplit(server.superuser_url)._replace(path=path).geturl())
        try:
            yield recycled
        finally:
            recycled.close()
