"""A file on its way: no connection is held for it, and nobody has many at once."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from notifier.accounts.permissions import Role
from notifier.flow import exports as flow
from notifier.flow.exports import Exporter
from notifier.store.database import Database
from notifier.store.ledger.exports import PartMissing
from notifier.web.people import downloads
from notifier.web.people.downloads import Downloads, TooManyAtOnce
from notifier.web.people.export_sources import SOURCES
from tests.people_pages import Browser, audit_rows

if TYPE_CHECKING:
    from flask import Flask

    from tests.web.people.conftest import SignIn


@pytest.fixture
def where(on_call: Browser, notices: dict[str, UUID], monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an export in several parts."""
    monkeypatch.setattr(flow, "BATCH", 1)
    answer = on_call.post("/exports/new/pending", format="ndjson")
    return str(answer.location)


def test_p2_a_reader_holds_no_connection_between_two_parts(where: str, database_url: str) -> None:
    export_id = UUID(where.rpartition("/")[2])
    with closing(Database(database_url, size=1, acquire_timeout_s=0.05)) as single:
        parts = 0
        for _ in Exporter(single, SOURCES).read(export_id):
            parts += 1
            with single.connection() as other:
                assert other.execute("SELECT 1 AS one").fetchone() == {"one": 1}
        assert parts > 1


def test_a_file_that_is_erased_under_its_reader_does_not_end_as_if_it_were_whole(
    where: str, database: Database
) -> None:
    parts = Exporter(database, SOURCES).read(UUID(where.rpartition("/")[2]))
    next(parts)
    with database.connection() as connection:
        connection.execute("DELETE FROM export_part")
    with pytest.raises(PartMissing):
        next(parts)


def test_a_person_has_few_files_at_once_and_each_that_ends_makes_room(
    on_call: Browser, where: str, app: Flask, database: Database, sign_in: SignIn
) -> None:
    path = f"{where}/file"
    with ExitStack() as stack:
        for _ in range(downloads.EACH):
            stack.enter_context(on_call.client.get(path))
        looks = len(audit_rows(database))
        refused = on_call.get(path)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) == downloads.RETRY_AFTER_S
        assert "Too many downloads at once" in refused.text
        assert len(audit_rows(database)) == looks, "what was not sent was not seen"
        with sign_in(Role.AUDITOR).client.get(path) as answer:
            assert answer.status_code == 200
    for _ in range(downloads.EACH + 1):
        assert on_call.client.head(path).status_code == 200
        assert on_call.get(f"{where[:-4]}0000/file").status_code == 404
    assert on_call.get(path).status_code == 200


def test_all_together_have_so_many_files_at_once() -> None:
    counted = Downloads(in_all=3, each=2)
    with ExitStack() as stack:
        for who in ("ada", "ada", "bob"):
            stack.enter_context(counted.one_more(who))
        for who in ("ada", "cleo"):
            with pytest.raises(TooManyAtOnce), counted.one_more(who):
                pass
    with counted.one_more("cleo"):
        pass
