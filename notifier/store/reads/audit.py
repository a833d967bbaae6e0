"""Who looked at what and who did what, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.store.reads.outside_text import shown
from notifier.store.reads.paging import COUNT_CAP, Found, Page, Walk, capped

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class AuditWanted:
    """Which rows; None: whichever. `since` and `until` are days in UTC, both inclusive.

    `notice` is a notice's id: the looks at it and the acts on it, whoever did them.
    """

    person: str | None = None
    action: str | None = None
    kind: str | None = None
    since: date | None = None
    until: date | None = None
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One look or act."""

    read_id: UUID
    at: datetime
    person: str
    role: str
    action: str
    object_kind: str
    object_ref: str | None
    hits: int | None
    outcome: str
    reason: str | None
    request_id: str | None


_WHERE: Final = """
     WHERE (%(person)s::text IS NULL OR person = %(person)s)
       AND (%(action)s::text IS NULL OR action = %(action)s)
       AND (%(kind)s::text IS NULL OR object_kind = %(kind)s)
       AND (%(notice)s::text IS NULL OR object_ref = %(notice)s)
       AND (%(since)s::date IS NULL OR at >= %(since)s::date::timestamp AT TIME ZONE 'UTC')
       AND (%(until)s::date IS NULL OR at < (%(until)s::date + 1)::timestamp AT TIME ZONE 'UTC')
"""
_KNOWN: Final = "AND (%(upto)s::timestamptz IS NULL OR at <= %(upto)s)"

_COUNT: Final = f"""
    SELECT clock.now,
        (SELECT count(*) FROM (SELECT FROM read_audit {_WHERE} {_KNOWN} LIMIT %(cap)s) AS counted)
            AS total,
        (SELECT count(*) FROM (SELECT FROM read_audit {_WHERE} AND at > %(upto)s
            LIMIT %(cap)s) AS new) AS fresh
      FROM (SELECT db_now() AS now) AS clock
"""


def load_audit(connection: PooledConnection, walk: Walk, wanted: AuditWanted) -> Page[AuditRow]:
    """One page of the audit."""
    compare, order = walk.words(descending=True)
    after = ""
    values: dict[str, object] = {
        "person": wanted.person,
        "action": wanted.action,
        "kind": wanted.kind,
        "notice": wanted.notice,
        "since": wanted.since,
        "until": wanted.until,
        "upto": walk.upto,
        "limit": walk.size + 1,
        "cap": COUNT_CAP + 1,
    }
    if walk.cursor is not None:
        after = f"AND (at, read_id) {compare} (%(at)s, %(id)s)"
        values |= {"at": walk.cursor.at, "id": walk.cursor.row_id}
    count = connection.execute(_COUNT, values).fetchone()
    assert count is not None  # noqa: S101 - a SELECT without FROM has one row
    found = connection.execute(
        f"""
        SELECT read_id, at, person, role, action, object_kind, object_ref, hits, outcome, reason,
               request_id
          FROM read_audit {_WHERE} {_KNOWN} {after}
         ORDER BY at {order}, read_id {order} LIMIT %(limit)s
        """,
        values,
    ).fetchall()
    kept, earlier, later = walk.cut(found, _key, count["now"])
    fresh = capped(count["fresh"])[0]
    total = capped(count["total"])
    rows = tuple(map(_row, kept))
    return Page(rows, earlier, later, *total, count["now"], fresh, walk.upto)


def _key(row: Found) -> tuple[datetime, str]:
    return row["at"], str(row["read_id"])


def _row(row: Found) -> AuditRow:
    fields: dict[str, Any] = dict(row)
    return AuditRow(**fields | {name: shown(fields[name]) for name in ("object_ref", "reason")})
