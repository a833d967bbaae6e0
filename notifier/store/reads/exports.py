"""Exports as their page lists them, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.store.reads.outside_text import shown
from notifier.store.reads.paging import COUNT_CAP, Found, Page, Walk, capped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class ExportRow:
    """One export; `digest` is its SHA-256 once it is ready, and stays when the file is erased."""

    export_id: UUID
    requested_by: str
    role: str
    requested_at: datetime
    request_id: str | None
    reason: str | None
    what: str
    parameters: Mapping[str, str]
    words: str
    format: str
    reader_zone: str
    masked: tuple[str, ...]
    as_of: datetime
    state: str
    rows: int
    bytes: int
    finished_at: datetime | None
    expires_at: datetime | None
    digest: str | None


_COLUMNS: Final = """export_id, requested_by, role, requested_at, request_id, reason, what,
    parameters, words, format, reader_zone, masked, as_of, state, rows, bytes, finished_at,
    expires_at, digest"""


def load_exports(connection: PooledConnection, walk: Walk, person: str | None) -> Page[ExportRow]:
    """One page of somebody's exports, of everybody's with None."""
    compare, order = walk.words(descending=True)
    whose = "(%(person)s::text IS NULL OR requested_by = %(person)s)"
    known = "AND (%(upto)s::timestamptz IS NULL OR requested_at <= %(upto)s)"
    after = ""
    values: dict[str, object] = {
        "person": person,
        "upto": walk.upto,
        "limit": walk.size + 1,
        "cap": COUNT_CAP + 1,
    }
    if walk.cursor is not None:
        after = f"AND (requested_at, export_id) {compare} (%(at)s, %(id)s)"
        values |= {"at": walk.cursor.at, "id": walk.cursor.row_id}
    count = connection.execute(
        f"""
        SELECT db_now() AS now,
            (SELECT count(*) FROM (SELECT FROM export WHERE {whose} {known} LIMIT %(cap)s) AS c)
                AS total,
            (SELECT count(*) FROM (SELECT FROM export WHERE {whose}
                AND requested_at > %(upto)s LIMIT %(cap)s) AS f) AS fresh
        """,
        values,
    ).fetchone()
    assert count is not None  # noqa: S101 - a SELECT without FROM has one row
    found = connection.execute(
        f"""
        SELECT {_COLUMNS} FROM export WHERE {whose} {known} {after}
         ORDER BY requested_at {order}, export_id {order} LIMIT %(limit)s
        """,
        values,
    ).fetchall()
    kept, earlier, later = walk.cut(found, _key, count["now"])
    fresh = capped(count["fresh"])[0]
    total = capped(count["total"])
    rows = tuple(map(_row, kept))
    return Page(rows, earlier, later, *total, count["now"], fresh, walk.upto)


def one_export(
    connection: PooledConnection, export_id: UUID, person: str | None
) -> ExportRow | None:
    """The export of this id if it is the person's own, or whoever's with None."""
    row = connection.execute(
        f"""SELECT {_COLUMNS} FROM export
             WHERE export_id = %(id)s
               AND (%(person)s::text IS NULL OR requested_by = %(person)s)""",
        {"id": export_id, "person": person},
    ).fetchone()
    return _row(row) if row else None


def _key(row: Found) -> tuple[datetime, str]:
    return row["requested_at"], str(row["export_id"])


def _row(row: Found) -> ExportRow:
    fields: dict[str, Any] = dict(row)
    digest = fields["digest"].hex() if fields["digest"] else None
    return ExportRow(
        **fields
        | {"digest": digest, "masked": tuple(fields["masked"]), "reason": shown(fields["reason"])}
    )
