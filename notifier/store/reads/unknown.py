"""The page of deliveries whose outcome nobody can prove, least validity left first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.domain.states import Channel
from notifier.store.reads.outside_text import shown
from notifier.store.reads.paging import COUNT_CAP, Found, Page, Walk, capped

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class UnknownRow:
    """One delivery in state unknown. `reason` says where it got lost."""

    notice_id: UUID
    event_id: str
    account_id: str
    channel: Channel
    since: datetime
    reason: str
    provider: str | None
    attempt: int
    reference: str | None
    mask: str | None
    expires_at: datetime
    next_check_at: datetime | None
    looks: int


@dataclass(frozen=True, slots=True)
class Lately:
    """How many calls were lost for one reason in the past quarter of an hour, settled or not."""

    reason: str
    count: int


# Since when: a look that finds nothing touches the delivery, but not the end of the call.
_SINCE: Final = "coalesce(t.finished_at, t.deadline, d.changed_at)"

_FROM: Final = """
      FROM delivery AS d
      JOIN notice AS n USING (notice_id)
      LEFT JOIN attempt AS t ON t.notice_id = d.notice_id AND t.channel = d.channel
           AND t.number = d.attempts
     WHERE d.state = 'unknown' AND (%(channel)s::text IS NULL OR d.channel = %(channel)s)
       AND (%(provider)s::text IS NULL OR d.provider = %(provider)s)
"""
_KNOWN: Final = f"AND (%(upto)s::timestamptz IS NULL OR {_SINCE} <= %(upto)s)"
"""What was unknown when the first page was read."""

_ROWS: Final = f"""
    SELECT d.notice_id, n.event_id, n.account_id, d.channel, {_SINCE} AS since, d.reason,
           d.provider, d.attempts AS attempt, t.reference, d.expires_at,
           d.next_check_at, d.looks,
           (SELECT c.mask FROM contact AS c
             WHERE c.notice_id = d.notice_id AND c.channel = d.channel) AS mask
           {_FROM} {_KNOWN}
"""

_COUNT: Final = f"""
    SELECT db_now() AS now,
        (SELECT count(*) FROM (SELECT {_FROM} {_KNOWN} LIMIT %(cap)s) AS counted) AS total,
        (SELECT count(*) FROM (SELECT {_FROM} AND {_SINCE} > %(upto)s LIMIT %(cap)s) AS new)
            AS fresh
"""

# With both ends given, the planner knows that it is a short stretch of the key.
_LATELY: Final = """
    SELECT reason, sum(n)::bigint AS count FROM rollup_count
     WHERE minute > (SELECT date_trunc('minute', db_now()) - interval '15 minutes')
       AND minute <= (SELECT db_now()) AND signal = 'unknown'
       AND (%(channel)s::text IS NULL OR channel = %(channel)s)
       AND (%(provider)s::text IS NULL OR provider = %(provider)s)
     GROUP BY reason ORDER BY 2 DESC, 1
"""


def load_lately(
    connection: PooledConnection, channel: str | None = None, provider: str | None = None
) -> tuple[Lately, ...]:
    """Why outcomes turned unknown lately, the most frequent reason first, as it was counted.

    The list holds what is unknown still: it is soon empty where look-ups settle quickly.
    """
    found = connection.execute(_LATELY, {"channel": channel, "provider": provider})
    return tuple(Lately(**row) for row in found)


def load_unknown(
    connection: PooledConnection,
    walk: Walk,
    channel: str | None = None,
    provider: str | None = None,
) -> Page[UnknownRow]:
    """One page of unknown outcomes, on one channel or at one provider where that is asked."""
    compare, order = walk.words()
    after = ""
    values: dict[str, object] = {
        "limit": walk.size + 1,
        "cap": COUNT_CAP + 1,
        "upto": walk.upto,
        "channel": channel,
        "provider": provider,
    }
    if walk.cursor is not None:
        notice_id, _, at_channel = walk.cursor.row_id.partition("/")
        key = "(d.expires_at, d.notice_id, d.channel)"
        after = f"AND {key} {compare} (%(at)s, %(id)s, %(at_channel)s)"
        values |= {"at": walk.cursor.at, "id": notice_id, "at_channel": at_channel}
    count = connection.execute(_COUNT, values).fetchone()
    assert count is not None  # noqa: S101 - a SELECT without FROM has one row
    found = connection.execute(
        f"""{_ROWS} {after}
            ORDER BY d.expires_at {order}, d.notice_id {order}, d.channel {order}
            LIMIT %(limit)s""",
        values,
    ).fetchall()
    kept, earlier, later = walk.cut(found, _key, count["now"])
    rows = tuple(_row(row) for row in kept)
    fresh = capped(count["fresh"])[0]
    total = capped(count["total"])
    return Page(rows, earlier, later, *total, count["now"], fresh, walk.upto)


def _key(row: Found) -> tuple[datetime, str]:
    return row["expires_at"], f"{row['notice_id']}/{row['channel']}"


def _row(row: Found) -> UnknownRow:
    fields: dict[str, Any] = {**row, "channel": Channel(row["channel"])}
    return UnknownRow(**fields | {name: shown(fields[name]) for name in ("provider", "reference")})
