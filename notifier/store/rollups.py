"""Counts a minute, taken from the trail by reading it forward, each row exactly once.

Every row of the trail names the transaction that wrote it. What has been counted is a snapshot:
new are the rows of transactions that were under way in it or began after it, and both are found
in the index by their numbers. So a transaction that commits late is counted when it is there,
holds nobody up, and costs nothing until then; the cost follows new rows and never the history.
The counts and the new snapshot are written in one transaction, under the lock of the one row
that holds the snapshot: run by several processes at once, each row is still counted once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg

Row = dict[str, Any]

BATCH: Final = 2_000
"""Rows of the trail in one transaction; those of the last writer come in whole."""

AT_MOST_EVERY_S: Final = 1.0

REGISTER: Final = "INSERT INTO rollup_reader DEFAULT VALUES ON CONFLICT DO NOTHING"

TURN: Final = """
SELECT seen::text AS seen FROM rollup_reader
 WHERE behind OR read_at IS NULL OR read_at <= db_now() - make_interval(secs => %(every)s)
   FOR UPDATE SKIP LOCKED
"""

# After a restore into another cluster the numbers of transactions begin anew: what lies between
# is not known, so that a new span begins.
BEGIN: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    begun AS (
        UPDATE rollup_reader SET span_at = now, seen = pg_current_snapshot(), read_at = now,
               behind = false
          FROM clock
         WHERE seen IS NULL
            OR pg_snapshot_xmax(seen) > pg_snapshot_xmax(pg_current_snapshot())
        RETURNING span_at)
INSERT INTO rollup_span (began_at, counted_until) SELECT span_at, span_at FROM begun
"""

_NEW: Final = """
    clock AS MATERIALIZED (SELECT db_now() AS now, pg_current_snapshot() AS snapshot),
    late AS (
        SELECT * FROM transition
         WHERE written_in = ANY (ARRAY(SELECT pg_snapshot_xip(%(seen)s::pg_snapshot)))),
    later AS MATERIALIZED (
        SELECT * FROM transition
         WHERE written_in >= pg_snapshot_xmax(%(seen)s::pg_snapshot)
         ORDER BY written_in FETCH FIRST %(batch)s ROWS WITH TIES),
    fresh AS MATERIALIZED (
        SELECT t.*, date_trunc('minute', t.recorded_at) AS minute,
               t.from_state IS DISTINCT FROM t.to_state AS moved,
               coalesce(e.region, '') AS region
          FROM (SELECT * FROM late UNION ALL SELECT * FROM later) t
          LEFT JOIN reset_event e USING (notice_id))
"""

# Over any CTE `fresh`; a row may show several signals. `word` stands beside an outcome.
SHOWN: Final = """
    shown AS (
        SELECT f.minute, s.signal, f.channel, f.provider, f.region, f.template_revision,
               CASE WHEN f.reason = 'unmapped' THEN f.reason
                    ELSE coalesce(f.detail, f.reason) END AS word
          FROM fresh f CROSS JOIN LATERAL (VALUES
              ('created', f.reason = 'event_admitted'),
              ('started', f.reason IN ('attempt_started', 'replay_started')),
              ('accepted', f.moved AND f.to_state = 'accepted'),
              ('delivered', f.moved AND f.to_state = 'delivered'),
              ('refused', f.moved AND f.to_state = 'failed' AND f.reason = 'refused'),
              ('failed', f.moved AND f.to_state = 'failed' AND f.reason <> 'refused'),
              ('not_accepted', f.reason = 'not_accepted'),
              ('unknown', f.moved AND f.to_state = 'unknown'),
              ('late_failure', f.reason IN ('late_receipt', 'contradicting_receipt')
                  AND f.from_state <> 'failed' AND f.evidence ->> 'status' = 'failed'),
              ('unmapped', f.reason = 'unmapped'),
              ('fallback', f.moved AND f.to_state = 'queued'
                  AND f.reason LIKE 'fallback_email_%%'),
              ('avoidable', f.reason = 'fallback_was_avoidable'),
              ('rescued', f.reason IN ('lease_expired', 'worker_lost')))
              AS s (signal, holds)
         WHERE s.holds)
"""

# A notice that has expired never changes again, so the last move that closed one of its
# deliveries is the one that made it so. Why is told by its whole trail, a few dozen rows; what
# was put back last for want of a link expired for that, and not because it waited its turn.
EXPIRED: Final = """
    ended AS (
        SELECT f.minute, f.recorded_at, f.region, f.template_revision, n.notice_id,
               n.account_id, n.event_id, n.created_at
          FROM fresh f JOIN notice n USING (notice_id)
         WHERE n.state = 'expired' AND f.moved
           AND f.to_state IN ('expired', 'failed', 'suppressed', 'canceled')
           AND NOT EXISTS (
               SELECT FROM transition x
                WHERE x.notice_id = f.notice_id AND x.seq > f.seq
                  AND x.from_state IS DISTINCT FROM x.to_state
                  AND x.to_state IN ('expired', 'failed', 'suppressed', 'canceled'))),
    lost AS (
        SELECT ended.notice_id, ended.minute, ended.region, ended.template_revision, last.channel,
               last.provider, last.step,
               CASE WHEN whole.unknown THEN 'unknown'
                    WHEN whole.unconfirmed THEN 'unconfirmed'
                    WHEN halted.halted THEN 'halt'
                    WHEN whole.failed THEN 'hard_failure'
                    WHEN unlinked.unlinked THEN 'no_link'
                    WHEN whole.waited THEN 'queue_delay'
                    ELSE 'other' END AS cause
          FROM ended
          CROSS JOIN LATERAL (
              SELECT coalesce(bool_or(x.reason = 'unknown_at_expiry'), false) AS unknown,
                     coalesce(bool_or(x.reason = 'unconfirmed_at_expiry'), false) AS unconfirmed,
                     coalesce(bool_or(x.to_state = 'failed' AND x.from_state <> 'failed'), false)
                         AS failed,
                     coalesce(bool_or(x.to_state = 'expired'
                                      AND x.from_state IN ('queued', 'claimed')), false) AS waited
                FROM transition x WHERE x.notice_id = ended.notice_id) whole
          CROSS JOIN LATERAL (
              SELECT EXISTS (
                  SELECT FROM transition x CROSS JOIN LATERAL (
                      SELECT y.reason FROM transition y
                       WHERE y.notice_id = x.notice_id AND y.channel = x.channel
                         AND y.seq < x.seq AND y.to_state = 'queued' AND y.from_state <> 'queued'
                       ORDER BY y.seq DESC LIMIT 1) queued
                   WHERE x.notice_id = ended.notice_id AND x.to_state = 'expired'
                     AND x.from_state IN ('queued', 'claimed')
                     AND queued.reason = 'link_unavailable') AS unlinked) unlinked
          CROSS JOIN LATERAL (
              SELECT x.channel, d.provider, coalesce(x.from_state, 'arrival') AS step
                FROM transition x LEFT JOIN delivery d USING (notice_id, channel)
               WHERE x.notice_id = ended.notice_id AND x.to_state = 'expired'
                 AND x.from_state IS DISTINCT FROM x.to_state
               ORDER BY x.seq DESC LIMIT 1) last
          CROSS JOIN LATERAL (
              SELECT EXISTS (
                  SELECT FROM halt h JOIN delivery d ON d.notice_id = ended.notice_id
                   WHERE h.engaged_at < ended.recorded_at
                     AND coalesce(h.released_at, 'infinity') > ended.created_at
                     AND d.state = 'expired' AND d.attempts = 0
                     AND h.scope = ANY (ARRAY['all', 'channel:' || d.channel,
                         'provider:' || d.provider, 'template:' || ended.template_revision,
                         'account:' || ended.account_id, 'event:' || ended.event_id])) AS halted
              ) halted)
"""

_KEY: Final = ("signal", "channel", "provider", "reason", "region", "template")


def _kept(table: str, time: str, at: str, by: tuple[str, ...] = _KEY) -> str:
    """A CTE that adds the CTE `summed` to a table whose key is its time and these columns."""
    names = ", ".join(by)
    places = ", ".join(str(place) for place in range(1, len(by) + 2))
    return f"""
    kept_in_{table} AS (
        INSERT INTO {table} AS r ({time}, {names}, n)
        SELECT {at}, {names}, sum(n) FROM summed GROUP BY {places} ORDER BY {places}
        ON CONFLICT ({time}, {names}) DO UPDATE SET n = r.n + excluded.n)"""


KEPT: Final = ",".join(
    (
        _kept("rollup_count", "minute", "minute"),
        _kept("rollup_total", "minute", "minute", ("signal", "channel", "template")),
        _kept("rollup_hour", "hour", "date_trunc('hour', minute, 'UTC')"),
    )
)
"""Over any CTE `summed` (a minute, the key, n): it is added to every table of counts."""

_COUNTS: Final = f"""
    counts AS (
        SELECT minute, signal, channel, provider,
               CASE WHEN signal IN ('created', 'started', 'avoidable', 'fallback') THEN ''
                    ELSE word END AS reason, region, template_revision
          FROM shown
        UNION ALL
        SELECT minute, 'expired', channel, provider, cause, region, template_revision FROM lost
        UNION ALL
        SELECT minute, 'expired_step', channel, provider, step, region, template_revision
          FROM lost),
    summed AS MATERIALIZED (
        SELECT minute, signal, coalesce(channel, '') AS channel,
               coalesce(provider, '') AS provider, reason, region,
               template_revision AS template, count(*) AS n
          FROM counts GROUP BY 1, 2, 3, 4, 5, 6, 7),
    {KEPT}
"""

# A full batch ends behind its last writer: the new snapshot is then the present one, cut there.
COUNT: Final = f"""
WITH {_NEW}, {SHOWN}, {EXPIRED}, {_COUNTS},
    reached AS MATERIALIZED (
        SELECT (SELECT count(*) FROM fresh) AS rows, count(*) >= %(batch)s AS full_batch,
               max(written_in::text::bigint) + 1 AS until
          FROM later),
    cut AS (
        SELECT reached.rows, full_batch, clock.now,
               CASE WHEN full_batch THEN
                   (least(pg_snapshot_xmin(snapshot)::text::bigint, until) || ':' || until || ':'
                    || array_to_string(ARRAY(
                        SELECT xip FROM pg_snapshot_xip(snapshot) AS xip
                         WHERE xip::text::bigint < until), ','))::pg_snapshot
               ELSE snapshot END AS snapshot
          FROM reached CROSS JOIN clock),
    covered AS (
        UPDATE rollup_span s SET counted_until = cut.now
          FROM cut, rollup_reader r
         WHERE NOT cut.full_batch AND s.began_at = r.span_at)
UPDATE rollup_reader r SET seen = cut.snapshot, read_at = cut.now, behind = cut.full_batch
  FROM cut
RETURNING cut.rows
"""

REFUSED: Final = "callback_refused"
UNREADABLE: Final = "callback_unreadable"
ADD_CALLBACKS: Final = f"""
WITH summed AS MATERIALIZED (
        SELECT date_trunc('minute', db_now()) AS minute, signal, '' AS channel, provider,
               '' AS reason, '' AS region, '' AS template, n
          FROM unnest(%(signals)s::text[], %(providers)s::text[], %(counts)s::bigint[])
               AS u (signal, provider, n)),
    {KEPT}
SELECT count(*) FROM summed
"""

# An hour at a time, so that a shorter retention never makes one long statement.
FORGET: Final = """
DELETE FROM {table}
 WHERE {time} < least((SELECT db_now()) - make_interval(days => 1) * %(days)s,
                      (SELECT min({time}) FROM {table}) + interval '1 hour')
"""
_FORGET: Final = tuple(
    FORGET.format(table=table, time=time)
    for table, time in (
        ("rollup_count", "minute"),
        ("rollup_total", "minute"),
        ("rollup_hour", "hour"),
        ("rollup_queue", "minute"),
        ("rollup_level", "minute"),
    )
)


def count_new(connection: psycopg.Connection[Row], *, batch: int = BATCH) -> int | None:
    """Count one batch of new rows of the trail; how many, None where it is not one's turn.

    It is nobody's turn while another process counts, or for a second after it did.
    """
    with connection.transaction():
        connection.execute(REGISTER)
        turn = connection.execute(TURN, {"every": AT_MOST_EVERY_S}).fetchone()
        if turn is None:
            return None
        if connection.execute(BEGIN).rowcount:
            return 0
        counted = connection.execute(COUNT, {"seen": turn["seen"], "batch": batch}).fetchone()
    assert counted is not None  # noqa: S101 - an aggregate has one row
    rows: int = counted["rows"]
    return rows


def add_refusals(connection: psycopg.Connection[Row], refusals: Mapping[str, int]) -> None:
    """Count callbacks that were refused, by provider, in the present minute."""
    add_callbacks(connection, {(REFUSED, provider): n for provider, n in refusals.items()})


def add_callbacks(
    connection: psycopg.Connection[Row], counts: Mapping[tuple[str, str], int]
) -> None:
    """Count callbacks that led to nothing, by signal and provider, in the present minute."""
    values = {
        "signals": [signal for signal, _ in counts],
        "providers": [provider for _, provider in counts],
        "counts": list(counts.values()),
    }
    connection.execute(ADD_CALLBACKS, values)


def forget(connection: psycopg.Connection[Row], *, days: float) -> int:
    """Remove counts and samples older than `days`, an hour's worth at most; how many rows."""
    return sum(connection.execute(each, {"days": days}).rowcount for each in _FORGET)
