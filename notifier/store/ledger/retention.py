"""Removes what has outlived its retention, in small batches that hold nobody up.

The trail is not here: it is kept for its own, longer time and goes by partitions, not rows.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

Row = dict[str, Any]

BATCH: Final = 500

# Notice ids begin with the milliseconds of their making (UUIDv7), so that "older than" is a
# range of the primary key and the cost follows what is removed.
CONTACTS: Final = """
WITH old AS MATERIALIZED (
    SELECT notice_id, channel FROM contact
     WHERE notice_id < (
         lpad(to_hex((extract(epoch FROM (SELECT db_now()) - make_interval(days => 1) * %(days)s)
                      * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
     ORDER BY notice_id, channel LIMIT %(batch)s)
DELETE FROM contact c USING old
 WHERE c.notice_id = old.notice_id AND c.channel = old.channel
"""

# A receipt that no attempt claimed within days is not ours: a notice lives a day at most.
SHORT_LIVED: Final = (
    "DELETE FROM rate_window WHERE window_at < (SELECT db_now()) - interval '1 day'",
    "DELETE FROM search_token WHERE expires_at < (SELECT db_now())",
    "DELETE FROM sign_in_link WHERE expires_at < (SELECT db_now()) - interval '1 day'",
    """DELETE FROM receipt
        WHERE applied_at IS NULL AND received_at < (SELECT db_now()) - interval '3 days'""",
    "DELETE FROM session WHERE expires_at < (SELECT db_now()) - interval '30 days'",
)


def erase_contacts(connection: psycopg.Connection[Row], *, days: float) -> int:
    """Erase one batch of masks and fingerprints older than `days`; how many."""
    return connection.execute(CONTACTS, {"days": days, "batch": BATCH}).rowcount


def erase_short_lived(connection: psycopg.Connection[Row]) -> int:
    """Remove counters, tokens, links, sessions and strangers' receipts that are over; how many."""
    return sum(connection.execute(statement).rowcount for statement in SHORT_LIVED)
