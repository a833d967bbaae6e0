"""Removes what has outlived its retention, in small batches that hold nobody up.

What proves a decision is not here: trail, attempts, notices and keys stay. Details are what
stands beside them: the event as it was sent, and the receipts, each of which has its row of the
trail. They go once the notice is old enough, has ended and its link is dead; the notice says when.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

Row = dict[str, Any]

BATCH: Final = 500

# Notice ids begin with the milliseconds of their making (UUIDv7), so that "older than" is a
# range of the primary key and the cost follows what is removed. Before 1970 there is no id:
# a negative number would be written as the greatest of all.
FIRST_KEPT: Final = """(
         lpad(to_hex(greatest(0, (extract(epoch FROM (SELECT db_now())
                                          - make_interval(days => 1) * %(days)s) * 1000)::bigint)),
              12, '0') || '70008000000000000000')::uuid"""

CONTACTS: Final = f"""
WITH old AS MATERIALIZED (
    SELECT ctid FROM contact
     WHERE notice_id < {FIRST_KEPT}
     ORDER BY notice_id, channel LIMIT %(batch)s FOR UPDATE SKIP LOCKED)
DELETE FROM contact WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
"""

OVER: Final = """n.state NOT IN ('email_pending', 'text_pending')
       AND n.expires_at <= (SELECT now FROM clock)"""
"""Nothing but a late fact can be written about this notice any more."""

# Rows are looked up by lists of keys: a join could be planned as one that reads whole tables.
# The notices are locked before their details (lock order), as far as nobody holds them.
_IS_OVER: Final = f"(SELECT {OVER} FROM notice n WHERE n.notice_id = {{}}.notice_id)"
_HELD: Final = f"""
    held AS MATERIALIZED (
        SELECT n.notice_id FROM notice n
         WHERE n.notice_id = ANY (ARRAY(SELECT notice_id FROM old)) AND {OVER}
         ORDER BY n.notice_id FOR UPDATE SKIP LOCKED),
    marked AS (
        UPDATE notice SET details_erased_at = (SELECT now FROM clock)
         WHERE notice_id = ANY (ARRAY(SELECT notice_id FROM held)))
"""

# A receipt has its own time as well: one that came late is known again as long as any other.
RECEIPTS: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    old AS MATERIALIZED (
        SELECT r.receipt_id, r.notice_id FROM receipt r
         WHERE r.notice_id < {FIRST_KEPT} AND r.applied_at IS NOT NULL
           AND r.received_at < (SELECT now FROM clock) - make_interval(days => 1) * %(days)s
           AND {_IS_OVER.format("r")}
         ORDER BY r.notice_id, r.received_at LIMIT %(batch)s),
    {_HELD}
DELETE FROM receipt
 WHERE receipt_id = ANY (ARRAY(SELECT receipt_id FROM old JOIN held USING (notice_id)))
"""

EVENTS: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    old AS MATERIALIZED (
        SELECT e.notice_id FROM reset_event e
         WHERE e.notice_id < {FIRST_KEPT} AND {_IS_OVER.format("e")}
         ORDER BY e.notice_id LIMIT %(batch)s),
    {_HELD}
DELETE FROM reset_event WHERE notice_id = ANY (ARRAY(SELECT notice_id FROM held))
"""

# A receipt that no attempt claimed within days is not ours: a notice lives a day at most.
STRANGERS: Final = """
WITH old AS MATERIALIZED (
    SELECT receipt_id FROM receipt
     WHERE applied_at IS NULL AND received_at < (SELECT db_now()) - interval '3 days'
     ORDER BY received_at, receipt_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED)
DELETE FROM receipt WHERE receipt_id = ANY (ARRAY(SELECT receipt_id FROM old))
"""

SHORT_LIVED: Final = (
    "DELETE FROM signed_cancel WHERE seen_at < (SELECT db_now()) - interval '1 day'",
    "DELETE FROM rate_window WHERE window_at < (SELECT db_now()) - interval '1 day'",
    "DELETE FROM search_token WHERE expires_at < (SELECT db_now())",
    "DELETE FROM sign_in_link WHERE expires_at < (SELECT db_now()) - interval '1 day'",
    "DELETE FROM session WHERE expires_at < (SELECT db_now()) - interval '30 days'",
)


def erase_contacts(
    connection: psycopg.Connection[Row], *, days: float, batch: int | None = None
) -> int:
    """Erase one batch of masks and fingerprints older than `days`; how many."""
    return _erase(connection, CONTACTS, batch, days=days)


def erase_receipts(
    connection: psycopg.Connection[Row], *, days: float, batch: int | None = None
) -> int:
    """Erase one batch of receipts about notices older than `days` that have ended; how many."""
    return _erase(connection, RECEIPTS, batch, days=days)


def erase_events(
    connection: psycopg.Connection[Row], *, days: float, batch: int | None = None
) -> int:
    """Erase one batch of events of notices older than `days` that have ended; how many."""
    return _erase(connection, EVENTS, batch, days=days)


def erase_strangers(connection: psycopg.Connection[Row], *, batch: int | None = None) -> int:
    """Erase one batch of receipts that are about nothing of ours; how many."""
    return _erase(connection, STRANGERS, batch)


def erase_short_lived(connection: psycopg.Connection[Row]) -> int:
    """Remove counters, tokens, links and sessions that are over; how many."""
    return sum(connection.execute(statement).rowcount for statement in SHORT_LIVED)


def _erase(
    connection: psycopg.Connection[Row], statement: str, batch: int | None, **values: float
) -> int:
    return connection.execute(statement, {"batch": batch or BATCH, **values}).rowcount
