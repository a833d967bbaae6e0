"""Samples a minute of what nobody can count afterwards: how long the queue waits, what is open.

A sample looks at so many rows at most, and a minute keeps its worst one.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

Row = dict[str, Any]

SAMPLED: Final = 10_000
"""Waiting deliveries of a channel that a sample looks at, those nearest to their stop first."""

SAMPLE_QUEUE: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    waiting AS MATERIALIZED (
        SELECT d.channel, n.template_id || '@' || n.template_revision AS template,
               coalesce(e.region, '') AS region,
               extract(epoch FROM clock.now - d.due_at)::float8 AS age_s
          FROM clock CROSS JOIN (VALUES ('email'), ('sms')) c (channel)
          CROSS JOIN LATERAL (
              SELECT notice_id, channel, due_at FROM delivery
               WHERE state = 'queued' AND delivery.channel = c.channel
                 AND due_at <= (SELECT now FROM clock)
               ORDER BY stop_at LIMIT %(sampled)s) d
          JOIN notice n USING (notice_id) LEFT JOIN reset_event e USING (notice_id))
INSERT INTO rollup_queue AS r (minute, channel, template, region, waiting, p50_s, p95_s, max_s)
SELECT date_trunc('minute', (SELECT now FROM clock)),
       CASE WHEN grouping(channel) = 1 THEN '*' ELSE channel END,
       CASE WHEN grouping(template) = 1 THEN '*' ELSE template END,
       CASE WHEN grouping(region) = 1 THEN '*' ELSE region END,
       count(*),
       coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY age_s), 0),
       coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY age_s), 0),
       coalesce(max(age_s), 0)
  FROM waiting GROUP BY CUBE (channel, template, region)
ON CONFLICT (minute, channel, template, region) DO UPDATE
   SET waiting = greatest(r.waiting, excluded.waiting), p50_s = greatest(r.p50_s, excluded.p50_s),
       p95_s = greatest(r.p95_s, excluded.p95_s), max_s = greatest(r.max_s, excluded.max_s)
"""

SAMPLE_LEVELS: Final = """
INSERT INTO rollup_level AS r (minute, pending, unknown)
SELECT date_trunc('minute', db_now()),
       (SELECT count(*) FROM (SELECT FROM notice
         WHERE state IN ('email_pending', 'text_pending') LIMIT %(sampled)s) p),
       (SELECT count(*) FROM (SELECT FROM delivery
         WHERE state = 'unknown' LIMIT %(sampled)s) u)
ON CONFLICT (minute) DO UPDATE
   SET pending = greatest(r.pending, excluded.pending),
       unknown = greatest(r.unknown, excluded.unknown)
"""


def sample(connection: psycopg.Connection[Row]) -> None:
    """Write down how long the queue waits and how much is open, at this moment."""
    connection.execute(SAMPLE_QUEUE, {"sampled": SAMPLED})
    connection.execute(SAMPLE_LEVELS, {"sampled": SAMPLED + 1})
