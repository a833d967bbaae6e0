"""What was observed about sender domains: how it stands, and every change, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.store.reads.paging import COUNT_CAP, Found, Page, Walk, capped

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class SendersWanted:
    """Which rows; None: whichever."""

    domain: str | None = None
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class SenderRow:
    """One record from its first to its last look. `ended_at` None: as far as known it stands.

    `before`: the texts of the row before it whose look-up did not fail; None for the first.
    """

    record_id: UUID
    domain: str
    kind: str
    selector: str
    name: str
    verdict: str
    texts: tuple[str, ...]
    reasons: tuple[str, ...]
    facts: Mapping[str, str]
    resolver: str
    ttl_s: int | None
    checks: int
    first_seen_at: datetime
    last_seen_at: datetime
    ended_at: datetime | None
    before: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class DomainRow:
    """A domain and its checks. `is_queued`: one is due that a person asked for."""

    domain: str
    due_at: datetime
    checked_at: datetime | None
    is_queued: bool
    asked_by: str | None


_WHERE: Final = """
     WHERE (%(domain)s::text IS NULL OR r.domain = %(domain)s)
       AND (%(verdict)s::text IS NULL OR r.verdict = %(verdict)s)
"""
_KNOWN: Final = "AND (%(upto)s::timestamptz IS NULL OR r.first_seen_at <= %(upto)s)"
_COUNT: Final = f"""
    SELECT clock.now,
        (SELECT count(*) FROM (SELECT FROM sender_record r {_WHERE} {_KNOWN} LIMIT %(cap)s) AS c)
            AS total,
        (SELECT count(*) FROM (SELECT FROM sender_record r {_WHERE} AND r.first_seen_at > %(upto)s
            LIMIT %(cap)s) AS f) AS fresh
      FROM (SELECT db_now() AS now) AS clock
"""
_COLUMNS: Final = """
    r.record_id, r.domain, r.kind, r.selector, r.name, r.verdict, r.texts, r.reasons, r.facts,
    r.resolver, r.ttl_s, r.checks, r.first_seen_at, r.last_seen_at, r.ended_at,
    (SELECT b.texts FROM sender_record b
      WHERE b.domain = r.domain AND b.kind = r.kind AND b.selector = r.selector
        AND (b.first_seen_at, b.record_id) < (r.first_seen_at, r.record_id)
        AND (b.verdict <> 'unknown' OR b.texts <> '{}')
      ORDER BY b.first_seen_at DESC, b.record_id DESC LIMIT 1) AS before
"""
_STANDING: Final = f"""
    SELECT {_COLUMNS} FROM sender_record r {_WHERE} AND r.ended_at IS NULL
     ORDER BY r.domain, array_position('{{spf,dkim,dmarc,alignment}}', r.kind), r.selector
     LIMIT 500
"""
_DOMAINS: Final = """
    SELECT domain, due_at, checked_at, asked_by,
           due_at <= clock.now AND coalesce(asked_at > coalesce(checked_at, '-infinity'), false)
               AS is_queued
      FROM sender_domain, (SELECT db_now() AS now) AS clock
     ORDER BY domain LIMIT 500
"""


def load_senders(
    connection: PooledConnection, walk: Walk, wanted: SendersWanted
) -> Page[SenderRow]:
    """One page of what was observed, standing or not."""
    compare, order = walk.words(descending=True)
    after = ""
    values: dict[str, object] = {
        "domain": wanted.domain,
        "verdict": wanted.verdict,
        "upto": walk.upto,
        "limit": walk.size + 1,
        "cap": COUNT_CAP + 1,
    }
    if walk.cursor is not None:
        after = f"AND (r.first_seen_at, r.record_id) {compare} (%(at)s, %(id)s)"
        values |= {"at": walk.cursor.at, "id": walk.cursor.row_id}
    count = connection.execute(_COUNT, values).fetchone()
    assert count is not None  # noqa: S101 - a SELECT without FROM has one row
    found = connection.execute(
        f"""
        SELECT {_COLUMNS} FROM sender_record r {_WHERE} {_KNOWN} {after}
         ORDER BY r.first_seen_at {order}, r.record_id {order} LIMIT %(limit)s
        """,
        values,
    ).fetchall()
    kept, earlier, later = walk.cut(found, _key, count["now"])
    fresh = capped(count["fresh"])[0]
    total = capped(count["total"])
    rows = tuple(map(_row, kept))
    return Page(rows, earlier, later, *total, count["now"], fresh, walk.upto)


def load_standing(connection: PooledConnection, wanted: SendersWanted) -> tuple[SenderRow, ...]:
    """How each record was last seen, domain by domain."""
    values = {"domain": wanted.domain, "verdict": wanted.verdict}
    return tuple(map(_row, connection.execute(_STANDING, values)))


def load_domains(connection: PooledConnection) -> tuple[DomainRow, ...]:
    """The domains that were ever sent from."""
    return tuple(DomainRow(**row) for row in connection.execute(_DOMAINS))


def _key(row: Found) -> tuple[datetime, str]:
    return row["first_seen_at"], str(row["record_id"])


def _row(row: Found) -> SenderRow:
    fields: dict[str, Any] = dict(row)
    before = None if fields["before"] is None else tuple(fields["before"])
    lists = {"texts": tuple(fields["texts"]), "reasons": tuple(fields["reasons"])}
    return SenderRow(**fields | lists | {"before": before})
