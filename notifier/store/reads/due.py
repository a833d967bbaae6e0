"""Which notices a sweep has to look at now: candidates only, judged again under their locks.

Each query walks one partial index from its oldest end, so that its cost follows what is due
and never the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import psycopg

from notifier.domain.call_limits import RESCUE_GRACE

Row = dict[str, Any]

BATCH: Final = 100

OVER: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now)
(SELECT d.notice_id FROM delivery d
  WHERE d.state IN ('standby', 'queued') AND d.stop_at <= (SELECT now FROM clock)
  ORDER BY d.stop_at LIMIT %(batch)s)
UNION
(SELECT d.notice_id FROM delivery d
  WHERE (d.state = 'unknown' OR (d.state = 'accepted' AND NOT d.final_acceptance))
    AND d.expires_at <= (SELECT now FROM clock)
  ORDER BY d.expires_at LIMIT %(batch)s)
"""

LAPSED: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now)
SELECT DISTINCT d.notice_id FROM (
    SELECT notice_id FROM delivery
     WHERE lease_owner IS NOT NULL
       AND lease_until < (SELECT now FROM clock) - make_interval(secs => %(grace)s)
     ORDER BY lease_until LIMIT %(batch)s) d
"""

# Left out is what has nothing to decide until another fact or its stop time comes: else a
# batch of those would hide whatever falls due after them.
UNDECIDED: Final = """
  FROM notice n
  JOIN delivery e ON e.notice_id = n.notice_id AND e.channel = 'email'
  JOIN delivery t ON t.notice_id = n.notice_id AND t.channel = 'sms'
 WHERE n.fallback_at <= (SELECT now FROM clock)
   AND t.state = 'standby' AND t.stop_at > (SELECT now FROM clock)
   AND NOT (e.state = 'delivered' OR (e.state = 'accepted' AND e.final_acceptance))
   AND NOT (e.state = 'attempted' AND e.lease_until > (SELECT now FROM clock))
   AND NOT (e.state IN ('unknown', 'accepted') AND n.hold_noted)
   AND NOT EXISTS (SELECT FROM halt x WHERE x.released_at IS NULL
       AND x.scope = ANY (ARRAY['all', 'channel:sms', 'provider:' || t.provider,
           'template:' || n.template_id || '@' || n.template_revision,
           'account:' || n.account_id, 'event:' || n.event_id]))
"""
FALLBACK_DUE: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now)
SELECT n.notice_id {UNDECIDED} ORDER BY n.fallback_at LIMIT %(batch)s
"""

# Among those with the least life left: enough to be on time for them, and no more to read
# however many wait behind a halt. The poll finds the others.
NEXT_DUE: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now)
SELECT extract(epoch FROM min(soon.due_at) - (SELECT now FROM clock))::float8 AS wait_s
  FROM unnest(%(channels)s::text[]) AS c (channel)
  CROSS JOIN LATERAL (
      SELECT d.due_at FROM delivery d WHERE d.state = 'queued' AND d.channel = c.channel
       ORDER BY d.stop_at LIMIT %(batch)s) AS soon
 WHERE soon.due_at > (SELECT now FROM clock)
"""


def next_due_s(connection: psycopg.Connection[Row], channels: Sequence[str]) -> float | None:
    """Seconds until the next queued delivery falls due, None where none waits for its time."""
    values = {"channels": [str(each) for each in channels], "batch": BATCH}
    row = connection.execute(NEXT_DUE, values, prepare=True).fetchone()
    return row["wait_s"] if row else None


def over(connection: psycopg.Connection[Row]) -> list[UUID]:
    """Notices with a delivery whose time is up."""
    return _ids(connection, OVER)


def lapsed(connection: psycopg.Connection[Row]) -> list[UUID]:
    """Notices with a lease that ran out."""
    return _ids(connection, LAPSED)


def fallback_due(connection: psycopg.Connection[Row]) -> list[UUID]:
    """Notices whose fallback time has come."""
    return _ids(connection, FALLBACK_DUE)


def _ids(connection: psycopg.Connection[Row], statement: str) -> list[UUID]:
    values = {"batch": BATCH, "grace": RESCUE_GRACE.total_seconds()}
    return [row["notice_id"] for row in connection.execute(statement, values)]
