"""The rigs of the store's tests, and somebody who may do anything to their database."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.rows import dict_row

from notifier.store.embedded import EmbeddedServer
from tests import database as databases
from tests.db.conftest import make_rig, rig
from tests.trail.tampering import Intruder

__all__ = ["make_rig", "rig"]


@pytest.fixture
def intruder(postgres: EmbeddedServer, database_url: str) -> Iterator[Intruder]:
    """A superuser's connection to the test's database, with all triggers off."""
    name = databases.database_name(database_url)
    url = postgres.superuser_url.replace("/postgres?", f"/{name}?", 1)
    options = "-c search_path=notifier -c session_replication_role=replica"
    with psycopg.connect(url, autocommit=True, options=options, row_factory=dict_row) as connection:
        yield Intruder(connection)
