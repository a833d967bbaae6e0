"""The inbox of receipts: each signed thing once, matched to its attempt, applied once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg

Row = dict[str, Any]

ROUNDS: Final = 40
"""Batches of strangers' receipts that one look at the inbox passes over."""

KEEP: Final = """
INSERT INTO receipt (receipt_id, provider, account, identity, reference, provider_message_id,
                     source, status, detail, provider_code, final, occurred_at, received_at)
VALUES (%(receipt_id)s, %(provider)s, %(account)s, %(identity)s, %(reference)s,
        %(provider_message_id)s, %(source)s, %(status)s, %(detail)s, %(provider_code)s,
        %(final)s, %(occurred_at)s, db_now())
ON CONFLICT (provider, account, identity) DO NOTHING
RETURNING receipt_id
"""

# Matched by the provider's id, else by our reference; a reference is believed only at the
# provider that it was given to.
MATCH: Final = """
SELECT r.receipt_id, a.notice_id, a.channel, a.number
  FROM receipt r
  JOIN attempt a ON a.provider = r.provider
   AND (a.provider_message_id = r.provider_message_id OR a.reference = r.reference)
 WHERE r.receipt_id = %(receipt_id)s AND r.applied_at IS NULL
 ORDER BY (a.provider_message_id = r.provider_message_id) DESC NULLS LAST
 LIMIT 1
"""

WAITING_FOR: Final = """
SELECT receipt_id FROM receipt
 WHERE applied_at IS NULL AND provider = %(provider)s
   AND (provider_message_id = %(provider_message_id)s OR reference = %(reference)s)
 ORDER BY coalesce(occurred_at, received_at), receipt_id
"""

# What nobody knows is looked at again after as long as it has waited: a receipt that is never
# matched costs a few looks in all, however many of them there are and however often the sweep
# runs. A row that somebody works on is left to him.
# Whoever was never looked at has no other order than its id, which grows with time.
PARKED: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    due AS MATERIALIZED (
        SELECT r.receipt_id, r.look_at, EXISTS (
                   SELECT FROM attempt a WHERE a.provider = r.provider
                      AND (a.provider_message_id = r.provider_message_id
                           OR a.reference = r.reference)) AS known
          FROM receipt r
         WHERE r.applied_at IS NULL AND r.look_at <= (SELECT now FROM clock)
         ORDER BY r.look_at, r.receipt_id LIMIT %(batch)s),
    strangers AS MATERIALIZED (
        SELECT r.receipt_id FROM receipt r JOIN due USING (receipt_id)
         WHERE NOT due.known FOR UPDATE OF r SKIP LOCKED),
    put_off AS (
        UPDATE receipt r
           SET look_at = clock.now + greatest(clock.now - r.received_at, interval '1 second')
          FROM strangers CROSS JOIN clock WHERE r.receipt_id = strangers.receipt_id)
SELECT receipt_id, known FROM due ORDER BY look_at, receipt_id
"""

LAST_IN_LINE: Final = """
UPDATE receipt SET look_at = db_now() WHERE receipt_id = (
    SELECT receipt_id FROM receipt WHERE receipt_id = %(receipt_id)s FOR UPDATE SKIP LOCKED)
"""

TAKE: Final = """
SELECT receipt_id, provider, source, status, detail, provider_code, provider_message_id,
       reference, occurred_at
  FROM receipt WHERE receipt_id = %(receipt_id)s AND applied_at IS NULL FOR UPDATE
"""

APPLIED: Final = """
UPDATE receipt SET notice_id = %(notice_id)s, channel = %(channel)s, attempt = %(attempt)s,
       applied_at = %(now)s
 WHERE receipt_id = %(receipt_id)s
"""


@dataclass(frozen=True, slots=True)
class Match:
    """The attempt that a receipt is about."""

    receipt_id: UUID
    notice_id: UUID
    channel: str
    number: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A receipt that nobody else applies, until the transaction ends."""

    receipt_id: UUID
    provider: str
    source: str
    status: str
    detail: str | None
    provider_code: str | None
    provider_message_id: str | None
    reference: str | None
    occurred_at: datetime | None


def keep(connection: psycopg.Connection[Row], rows: Sequence[Row]) -> list[UUID]:
    """Store receipts; the ids of those that were not there before.

    Stored in one fixed order: whoever tells the same things in another order would otherwise
    wait for us while we wait for him.
    """
    kept = set()
    with connection.transaction():
        for row in sorted(rows, key=_identity):
            found = connection.execute(KEEP, row, prepare=True).fetchone()
            if found:
                kept.add(found["receipt_id"])
    return [row["receipt_id"] for row in rows if row["receipt_id"] in kept]


def _identity(row: Row) -> tuple[str, str, bytes]:
    return row["provider"], row["account"], row["identity"]


def match(connection: psycopg.Connection[Row], receipt_id: UUID) -> Match | None:
    """The attempt that an unapplied receipt is about, None where none is known (yet)."""
    row = connection.execute(MATCH, {"receipt_id": receipt_id}, prepare=True).fetchone()
    return (
        Match(row["receipt_id"], row["notice_id"], row["channel"], row["number"]) if row else None
    )


def waiting_for(
    connection: psycopg.Connection[Row],
    *,
    provider: str,
    reference: str,
    provider_message_id: str | None,
) -> list[UUID]:
    """Parked receipts about one attempt, in the order in which things occurred."""
    values = {
        "provider": provider,
        "reference": reference,
        "provider_message_id": provider_message_id,
    }
    return [row["receipt_id"] for row in connection.execute(WAITING_FOR, values)]


def parked(connection: psycopg.Connection[Row], batch: int) -> list[UUID]:
    """Up to `batch` receipts that wait although their attempt is known by now, oldest first.

    Strangers' receipts that are met on the way are put off, a bounded number at a time.
    """
    for _ in range(ROUNDS):
        rows = connection.execute(PARKED, {"batch": batch}).fetchall()
        known = [row["receipt_id"] for row in rows if row["known"]]
        if known or len(rows) < batch:
            return known
    return []


def last_in_line(connection: psycopg.Connection[Row], receipt_id: UUID) -> None:
    """Let those behind a receipt that cannot be applied have their turn before it."""
    connection.execute(LAST_IN_LINE, {"receipt_id": receipt_id})


def take(connection: psycopg.Connection[Row], receipt_id: UUID) -> Taken | None:
    """Lock a receipt for applying; None where it was applied meanwhile."""
    row = connection.execute(TAKE, {"receipt_id": receipt_id}).fetchone()
    return Taken(**row) if row else None


def applied(
    connection: psycopg.Connection[Row],
    receipt_id: UUID,
    *,
    notice_id: UUID,
    channel: str,
    attempt: int,
    now: datetime,
) -> None:
    """Mark a receipt as applied, in the transaction that applies it."""
    values = {
        "receipt_id": receipt_id,
        "notice_id": notice_id,
        "channel": channel,
        "attempt": attempt,
        "now": now,
    }
    connection.execute(APPLIED, values)
