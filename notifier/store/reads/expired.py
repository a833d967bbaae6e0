"""The page of notices whose window closed without proof of arrival, latest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from notifier.store.reads.notice_rows import NoticeRow, rows_of
from notifier.store.reads.paging import COUNT_CAP, Cursor, Found, Page, Walk, capped
from notifier.store.reads.rollups import HOUR, Trend, load_regions, load_trend
from notifier.store.rollups import EXPIRED

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class ExpiredRow:
    """An expired notice with the badges that late evidence may give it.

    `arrived_in_time_learnt_late`: a receipt that came after expiry says it arrived before.
    `arrived_dead`: it arrived after expiry, so the customer holds a dead link.
    `arrived_at_unknown_time`: learnt after expiry, and the provider does not say when it was.
    `cause` is why it expired, by its name in the counts; None where its trail does not tell.
    """

    notice: NoticeRow
    arrived_in_time_learnt_late: bool
    arrived_dead: bool
    arrived_at_unknown_time: bool
    cause: str | None


# Of a receipt that is past its retention the trail tells; its step occurred when it was
# recorded where the provider did not say when.
_BADGES: Final = """
    SELECT n.notice_id,
           bool_or(coalesce(r.occurred_at, r.received_at) < n.expires_at) AS in_time,
           bool_or(r.occurred_at >= n.expires_at) AS dead,
           bool_or(r.occurred_at IS NULL AND r.received_at >= n.expires_at) AS unclear
      FROM notice AS n
      JOIN (SELECT notice_id, occurred_at, received_at FROM receipt
             WHERE notice_id = ANY (%(notices)s) AND status = 'delivered'
            UNION ALL
            SELECT notice_id, nullif(occurred_at, recorded_at), recorded_at FROM transition AS t
             WHERE notice_id = ANY (%(notices)s) AND receipt_id IS NOT NULL
               AND evidence ->> 'status' = 'delivered'
               AND (SELECT true FROM receipt WHERE receipt_id = t.receipt_id) IS NULL
           ) AS r USING (notice_id)
     WHERE n.notice_id = ANY (%(notices)s)
     GROUP BY n.notice_id
"""

_CAUSES: Final = f"""
    WITH fresh AS MATERIALIZED (
        SELECT t.*, date_trunc('minute', t.recorded_at) AS minute,
               t.from_state IS DISTINCT FROM t.to_state AS moved, '' AS region
          FROM transition AS t WHERE t.notice_id = ANY (%(notices)s)), {EXPIRED}
    SELECT notice_id, cause FROM lost
"""

# A notice whose reset ended early expired before its link did.
_ENDED: Final = "least(expires_at, changed_at)"
_KNOWN: Final = f"AND (%(upto)s::timestamptz IS NULL OR {_ENDED} <= %(upto)s)"
"""What had expired when the first page was read."""

# The region stands with the event, and on the trail once that is past its retention: each
# notice that is looked at costs a look or two there.
_HERE: Final = """(%(region)s::text IS NULL OR %(region)s = coalesce(
    (SELECT coalesce(e.region, '') FROM reset_event AS e WHERE e.notice_id = seen.notice_id),
    (SELECT t.evidence ->> 'region' FROM transition AS t
      WHERE t.notice_id = seen.notice_id AND t.seq = 1)))
"""
_COUNT: Final = f"""
    WITH known AS MATERIALIZED (
        SELECT notice_id FROM notice WHERE state = 'expired' {_KNOWN}
         ORDER BY expires_at DESC, notice_id DESC LIMIT %(cap)s)
    SELECT db_now() AS now,
        (SELECT count(*) FROM known) AS walked,
        (SELECT count(*) FROM known AS seen WHERE {_HERE}) AS total,
        (SELECT count(*) FROM (SELECT notice_id FROM notice WHERE state = 'expired'
            AND expires_at > %(upto)s - interval '1 day' AND {_ENDED} > %(upto)s
            LIMIT %(cap)s) AS seen WHERE {_HERE}) AS fresh
"""
_WALK: Final = f"""
    SELECT notice_id, expires_at FROM notice WHERE state = 'expired' {_KNOWN} {{after}}
     ORDER BY expires_at {{order}}, notice_id {{order}} LIMIT %(cap)s
"""
_ROWS: Final = f"""
    SELECT notice_id, expires_at FROM ({_WALK}) AS seen WHERE {_HERE}
     ORDER BY expires_at {{order}}, notice_id {{order}} LIMIT %(limit)s
"""
_EDGE: Final = f"SELECT notice_id, expires_at FROM ({_WALK}) AS walked OFFSET %(cap)s - 1"


HOURS: Final = 24
"""How far back the page tells causes."""


def load_causes(
    connection: PooledConnection, region: str | None = None
) -> tuple[Trend, tuple[str, ...]]:
    """Why notices expired, by the hours of the day up to now; and in which regions any did."""
    row = connection.execute("SELECT date_trunc('hour', db_now()) AS hour").fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    since, until = row["hour"] - (HOURS - 1) * HOUR, row["hour"] + HOUR
    trend = load_trend(connection, since, HOUR, HOURS, ["expired"], {"region": region})
    return trend, load_regions(connection, since, until, ["expired"])


def load_expired(
    connection: PooledConnection, walk: Walk, region: str | None = None
) -> Page[ExpiredRow]:
    """One page of expired notices.

    Those of a region are looked for among ten thousand; where there are more, the page has a
    cursor behind these, full or not.
    """
    compare, order = walk.words(descending=True)
    after = ""
    values: dict[str, object] = {
        "limit": walk.size + 1,
        "cap": COUNT_CAP + 1,
        "upto": walk.upto,
        "region": region,
    }
    if walk.cursor is not None:
        after = f"AND (expires_at, notice_id) {compare} (%(at)s, %(id)s)"
        values |= {"at": walk.cursor.at, "id": walk.cursor.row_id}
    count = connection.execute(_COUNT, values).fetchone()
    assert count is not None  # noqa: S101 - a SELECT without FROM has one row
    found = connection.execute(_ROWS.format(after=after, order=order), values).fetchall()
    kept, earlier, later = walk.cut(found, _key, count["now"])
    if region is not None and len(found) <= walk.size:
        edge = connection.execute(_EDGE.format(after=after, order=order), values).fetchone()
        if edge is not None:
            upto = walk.upto or count["now"]
            beyond = Cursor(*_key(edge), forward=walk.forward, upto=upto)
            earlier, later = (earlier, beyond) if walk.forward else (beyond, later)
    rows = _with_badges(connection, [row["notice_id"] for row in kept])
    fresh = capped(count["fresh"])[0]
    total, more = capped(count["total"])[0], count["walked"] > COUNT_CAP
    return Page(rows, earlier, later, total, more, count["now"], fresh, walk.upto)


def _with_badges(connection: PooledConnection, notice_ids: list[UUID]) -> tuple[ExpiredRow, ...]:
    badges = {row["notice_id"]: row for row in connection.execute(_BADGES, {"notices": notice_ids})}
    told = connection.execute(_CAUSES, {"notices": notice_ids})
    causes = {row["notice_id"]: row["cause"] for row in told}

    def has(notice_id: UUID, badge: str) -> bool:
        return bool(badges.get(notice_id, {}).get(badge))

    return tuple(
        ExpiredRow(
            line,
            has(line.notice_id, "in_time"),
            has(line.notice_id, "dead"),
            has(line.notice_id, "unclear"),
            causes.get(line.notice_id),
        )
        for line in rows_of(connection, notice_ids)
    )


def _key(row: Found) -> tuple[datetime, str]:
    return row["expires_at"], str(row["notice_id"])
