"""The page of notices that are not finished, least validity left first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from notifier.domain.reasons import Reason
from notifier.domain.states import Channel
from notifier.store.reads.notice_rows import NoticeRow, rows_of
from notifier.store.reads.outside_text import shown
from notifier.store.reads.paging import COUNT_CAP, Found, Page, Walk, capped

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


class Stage(StrEnum):
    """A filter on where the work of a pending notice stands."""

    ALL = "all"
    WAITING = "waiting"
    SENDING = "sending"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"


_STATES: Final = {
    Stage.WAITING: ["queued", "standby"],
    Stage.SENDING: ["claimed", "attempted"],
    Stage.UNKNOWN: ["unknown"],
    Stage.ACCEPTED: ["accepted"],
}

_OPEN: Final = "state IN ('email_pending', 'text_pending')"
_IN_STAGE: Final = """
    AND EXISTS (SELECT FROM delivery AS d
                 WHERE d.notice_id = notice.notice_id AND d.state = ANY (%(states)s)
                   AND (d.state <> 'standby' OR NOT d.is_fallback))
"""

_KNOWN: Final = "AND (%(upto)s::timestamptz IS NULL OR created_at <= %(upto)s)"
"""What was there when the first page was read."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """How many open deliveries were turned back, or hang, for one reason.

    `detail`: for links, what was wrong with the answer (a `LinkFault`), else None. No more than
    `COUNT_CAP` of the queue are looked at, so that a flood costs no more than that.
    """

    reason: Reason
    detail: str | None
    count: int


_TURNED_BACK: Final = (
    Reason.LINK_UNAVAILABLE, Reason.HALTED, Reason.PROVIDER_PAUSED, Reason.NOT_ACCEPTED,
    Reason.RECONCILED_ABSENT, Reason.LEASE_EXPIRED,
)  # fmt: skip
_HINDRANCES: Final = """
    SELECT reason, detail, count(*) AS count FROM (
        SELECT reason, CASE WHEN reason = %(no_link)s THEN detail END AS detail FROM
            (SELECT reason, detail FROM delivery WHERE state = 'queued' LIMIT %(cap)s) AS looked_at
         WHERE reason = ANY (%(turned_back)s)
        UNION ALL
        (SELECT %(lapsed)s AS reason, NULL AS detail FROM delivery
          WHERE lease_owner IS NOT NULL AND lease_until < db_now() LIMIT %(cap)s)) AS hindered
     GROUP BY reason, detail ORDER BY 3 DESC, 1, 2
"""


def load_hindrances(connection: PooledConnection) -> tuple[Hindrance, ...]:
    """What keeps open work from going, the most frequent first; a lapsed lease is `worker_lost`."""
    values = {
        "cap": COUNT_CAP,
        "turned_back": [str(each) for each in _TURNED_BACK],
        "lapsed": str(Reason.WORKER_LOST),
        "no_link": str(Reason.LINK_UNAVAILABLE),
    }
    return tuple(
        Hindrance(Reason(row["reason"]), shown(row["detail"]), row["count"])
        for row in connection.execute(_HINDRANCES, values)
    )


@dataclass(frozen=True, slots=True)
class HoldingPause:
    """A paused provider that notices of the list wait for: how many, and at least (`more`)."""

    provider: str
    detail: str
    until: datetime
    held: int
    more: bool


# Held back is what could start before the pause ends; the channels apart, because a provider
# serves one, and the other's flood shall not hide it. `OFFSET 0` has each notice looked up: joined
# otherwise, a queue of some size would have all of them read.
_PAUSES: Final = """
    WITH clock AS MATERIALIZED (SELECT db_now() AS now),
        pauses AS MATERIALIZED (
            SELECT provider, detail, until FROM provider_pause, clock WHERE until > clock.now),
        looked_at AS MATERIALIZED (
            SELECT queued.* FROM unnest(%(channels)s::text[]) AS c (channel) CROSS JOIN LATERAL (
                SELECT channel, notice_id, provider, stop_at, due_at FROM delivery
                 WHERE state = 'queued' AND channel = c.channel
                   AND EXISTS (SELECT FROM pauses)
                 ORDER BY stop_at, notice_id LIMIT %(cap)s) AS queued)
    SELECT p.provider, p.detail, p.until, count(*)::int AS held,
           EXISTS (SELECT FROM looked_at GROUP BY channel HAVING count(*) >= %(cap)s) AS more
      FROM clock CROSS JOIN pauses AS p JOIN looked_at AS q USING (provider)
     CROSS JOIN LATERAL (
        SELECT FROM notice WHERE notice_id = q.notice_id AND {where} OFFSET 0) AS listed
     WHERE q.due_at < p.until AND q.stop_at > clock.now
     GROUP BY p.provider, p.detail, p.until ORDER BY p.provider
"""


def load_holding_pauses(
    connection: PooledConnection, stage: Stage = Stage.ALL
) -> tuple[HoldingPause, ...]:
    """The pauses that hold back notices of this list.

    No more than `COUNT_CAP` of each channel's queue are looked at, those with the least time first.
    """
    # What is looked at is queued, so that it waits.
    where = _OPEN if stage in {Stage.ALL, Stage.WAITING} else _OPEN + _IN_STAGE
    values = {"channels": list(Channel), "cap": COUNT_CAP, "states": _STATES.get(stage)}
    return tuple(
        HoldingPause(**row | {name: shown(row[name]) for name in ("provider", "detail")})
        for row in connection.execute(_PAUSES.format(where=where), values)
    )


def load_pending(
    connection: PooledConnection, walk: Walk, stage: Stage = Stage.ALL
) -> Page[NoticeRow]:
    """One page of pending notices; the cost follows open work, not history."""
    compare, order = walk.words()
    where = _OPEN if stage is Stage.ALL else _OPEN + _IN_STAGE
    after = ""
    values: dict[str, object] = {
        "states": _STATES.get(stage),
        "limit": walk.size + 1,
        "cap": COUNT_CAP + 1,
        "upto": walk.upto,
    }
    if walk.cursor is not None:
        after = f"AND (expires_at, notice_id) {compare} (%(at)s, %(id)s)"
        values |= {"at": walk.cursor.at, "id": walk.cursor.row_id}
    count = connection.execute(
        f"""
        SELECT db_now() AS now,
            (SELECT count(*) FROM
                (SELECT FROM notice WHERE {where} {_KNOWN} LIMIT %(cap)s) AS counted) AS total,
            (SELECT count(*) FROM
                (SELECT FROM notice WHERE {where} AND created_at > %(upto)s
                  LIMIT %(cap)s) AS new) AS fresh
        """,
        values,
    ).fetchone()
    assert count is not None  # noqa: S101 - a SELECT without FROM has one row
    found = connection.execute(
        f"""
        SELECT notice_id, expires_at FROM notice WHERE {where} {_KNOWN} {after}
         ORDER BY expires_at {order}, notice_id {order} LIMIT %(limit)s
        """,
        values,
    ).fetchall()
    kept, earlier, later = walk.cut(found, _key, count["now"])
    rows = rows_of(connection, [row["notice_id"] for row in kept])
    fresh = capped(count["fresh"])[0]
    total = capped(count["total"])
    return Page(rows, earlier, later, *total, count["now"], fresh, walk.upto)


def _key(row: Found) -> tuple[datetime, str]:
    return row["expires_at"], str(row["notice_id"])
