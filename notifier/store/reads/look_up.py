"""Which notices an exact id or a destination's fingerprint leads to. Never by likeness."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import UUID

from notifier.domain.event import is_id
from notifier.store.reads.notice_rows import NoticeRow, rows_of

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

MOST: Final = 200
"""Notices shown for one look-up, newest first."""


class Key(StrEnum):
    """What a typed id may be, strongest guess first."""

    TICKET = "ticket"
    EVENT = "event"
    RESET_REQUEST = "reset_request"
    ACCOUNT = "account"
    REFERENCE = "reference"


_BY: Final = {
    Key.TICKET: "SELECT notice_id FROM ticket_link WHERE ticket_id = %(id)s",
    Key.EVENT: """SELECT notice_id FROM admission WHERE event_id = %(id)s
                  UNION SELECT notice_id FROM admission WHERE idempotency_key = %(id)s""",
    Key.RESET_REQUEST: "SELECT notice_id FROM admission WHERE reset_request_id = %(id)s",
    Key.ACCOUNT: """SELECT notice_id FROM admission WHERE account_id = %(id)s
                     ORDER BY requested_at DESC LIMIT 201""",
    Key.REFERENCE: "SELECT notice_id FROM attempt WHERE reference = %(id)s",
}


TRACES: Final = """
SELECT notice_id FROM notice WHERE notice_id = %(id)s
 UNION SELECT notice_id FROM admission WHERE notice_id = %(id)s
 UNION SELECT notice_id FROM transition WHERE notice_id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Notices found, newest first; `more` when there are others beyond `MOST`."""

    rows: tuple[NoticeRow, ...]
    more: bool
    as_of: datetime


def look_up(connection: PooledConnection, key: Key, value: str) -> LookedUp:
    """All notices that carry this id in this place."""
    found = connection.execute(_BY[key], {"id": value})
    return _looked_up(connection, [row["notice_id"] for row in found])


def kinds_of(connection: PooledConnection, value: str) -> dict[Key, tuple[UUID, ...]]:
    """Every place in which this id stands, with the notices it leads to from there."""
    found = {
        key: tuple(row["notice_id"] for row in connection.execute(statement, {"id": value}))
        for key, statement in _BY.items()
    }
    return {key: notices for key, notices in found.items() if notices}


def notices_known_as(connection: PooledConnection, value: str) -> tuple[UUID, ...]:
    """Every notice that `value` leads to as an id of any kind, its own among them.

    Also one of which nothing but its keys or its trail is left.
    """
    if not is_id(value):
        return ()
    found = {notice for notices in kinds_of(connection, value).values() for notice in notices}
    with suppress(ValueError):
        rows = connection.execute(TRACES, {"id": UUID(value)})
        found |= {row["notice_id"] for row in rows}
    return tuple(sorted(found))


def by_fingerprint(connection: PooledConnection, fingerprints: Sequence[bytes]) -> LookedUp:
    """All notices whose destination has one of these fingerprints."""
    found = connection.execute(
        """
        SELECT DISTINCT notice_id FROM contact WHERE fingerprint = ANY (%s)
         ORDER BY notice_id DESC LIMIT %s
        """,
        [list(fingerprints), MOST + 1],
    )
    return _looked_up(connection, [row["notice_id"] for row in found])


def notice_of_event(connection: PooledConnection, event_id: str) -> UUID | None:
    """The notice of an event, None where there is none."""
    row = connection.execute(
        "SELECT notice_id FROM admission WHERE event_id = %s", [event_id]
    ).fetchone()
    return row["notice_id"] if row else None


def exists(connection: PooledConnection, notice_id: UUID) -> bool:
    """Whether there is a notice of this id."""
    row = connection.execute("SELECT FROM notice WHERE notice_id = %s", [notice_id]).fetchone()
    return row is not None


def _looked_up(connection: PooledConnection, notice_ids: list[UUID]) -> LookedUp:
    clock = connection.execute("SELECT db_now() AS now").fetchone()
    assert clock is not None  # noqa: S101 - a SELECT without FROM has one row
    rows = rows_of(connection, notice_ids[:MOST])
    newest_first = tuple(sorted(rows, key=lambda row: (row.requested_at, row.notice_id))[::-1])
    return LookedUp(newest_first, len(notice_ids) > MOST, clock["now"])
