"""The pages' benchmark in its short form: sizes, and what is read; times are for the long one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest
from flask import Flask
from psycopg import sql
from psycopg.conninfo import make_conninfo

from notifier.accounts.permissions import Role
from notifier.store import trail
from notifier.store.database import Database
from tests.bench import pages_seed
from tests.bench.pages_visit import FRAGMENT_BYTES, LIST_BYTES, VISITS, Visit, endpoints, samples
from tests.database import database_name
from tests.people_pages import Browser, build_app, signed_in
from tests.people_seed import ensure_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notifier.store.embedded import EmbeddedServer

SCANS = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY (%s)"


@pytest.fixture
def admin(postgres: EmbeddedServer, database_url: str) -> Iterator[psycopg.Connection]:
    """A superuser's session in a database that holds three thousand notices."""
    address = make_conninfo(postgres.superuser_url, dbname=database_name(database_url))
    pages_seed.seed(address, notices=3_000, opened=600, history=timedelta(days=1))
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def path_of(path: str, ids: Mapping[str, Sequence[str]]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: ids[found[1]][0], path)


def scans(admin: psycopg.Connection) -> dict[str, int]:
    rows = admin.execute(SCANS, [list(pages_seed.BIG)]).fetchall()
    return {name: int(count) for name, count in rows}


@dataclass(slots=True)
class Visitors:
    """One browser for each role."""

    app: Flask
    database: Database
    browsers: dict[Role, Browser] = field(default_factory=dict)

    def sizes(self, visit: Visit, ids: Mapping[str, Sequence[str]]) -> tuple[int, int]:
        """Bytes of the page and of its fragment (nought where it has none)."""
        if visit.role not in self.browsers:
            self.browsers[visit.role] = signed_in(self.app, self.database, visit.role)
        browser, path = self.browsers[visit.role], path_of(visit.path, ids)
        page = browser.get(path)
        assert page.status_code == 200 or (visit.look_up and page.status_code == 303), page.text
        return len(page.data), len(browser.poll(path).data) if visit.fragment else 0


def test_no_page_is_too_large_or_reads_a_large_table_from_end_to_end(
    admin: psycopg.Connection, database_url: str
) -> None:
    """With scans forbidden, Postgres makes one only where no index serves."""
    with closing(Database(database_url, size=1)) as database:
        assert {each.endpoint for each in VISITS} == endpoints(database)
        with database.connection() as connection:
            ensure_policy(connection)
            ids = samples(connection)
    name = sql.Identifier(database_name(database_url))
    admin.execute(sql.SQL("ALTER DATABASE {} SET enable_seqscan = off").format(name))
    before = scans(admin)
    with closing(Database(database_url, size=2)) as database:
        visitors = Visitors(build_app(database), database)
        found = {each.path: visitors.sizes(each, ids) for each in VISITS}
    read_whole = [name for name, count in scans(admin).items() if count != before[name]]
    assert read_whole == []
    assert {path: size for path, (size, _) in found.items() if size > LIST_BYTES} == {}
    assert {path: size for path, (_, size) in found.items() if size > FRAGMENT_BYTES} == {}


def test_a_seeded_chain_is_whole(admin: psycopg.Connection) -> None:
    """Hashed anew by the product's function, row by row, from the notice's own id."""
    given = ", ".join(f"t.{name}" for name in trail.COLUMNS)
    statement = f"""
        SELECT count(*), count(*) FILTER (WHERE
            t.hash <> notifier.trail_hash(t.prev_hash, {given})
            OR t.prev_hash <> coalesce(before.hash, sha256(convert_to(t.notice_id::text, 'UTF8'))))
          FROM notifier.transition t
          LEFT JOIN notifier.transition before
            ON before.notice_id = t.notice_id AND before.seq = t.seq - 1
        """  # noqa: S608 - our own names
    broken = admin.execute(statement).fetchone()
    assert broken
    assert broken[0] >= 6 * 3_000
    assert broken[1] == 0
