"""How long things took: from due to intent, from intent to answer, from accepted to arrived.

Notice ids carry their time, so a window is one stretch of the attempts' own key, read from its
newest end. At most `SCANNED` entries of the key are passed over and `MOST` attempts of a channel
looked at, each through its own keys, however long the window or the history is. Ids are made on
the clock of the process, hence the slack around the window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.domain.proposals import Measured, Waits
from notifier.domain.states import Channel

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

MOST: Final = 1_000
"""Attempts of a channel that one look reads, the newest of the window: the upper end of their
99th percentile is at most six thousandths further out."""
SCANNED: Final = 100_000
"""Entries of the key that are passed over to find them; texts are rarer than email."""
SLACK: Final = timedelta(minutes=5)

# OFFSET 0 keeps each look-up by itself: a join would read the whole of a table to hash it.
# A provider's clock may be ahead or behind: an arrival lies between our acceptance and the
# moment when we were told. Only notices that are over count for the way to the recipient:
# among open ones the quick would have reported, and the slow not yet.
LATENCIES: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    picked AS MATERIALIZED (
        SELECT p.* FROM (VALUES ('email'), ('sms')) c (channel)
         CROSS JOIN LATERAL (
             SELECT notice_id, channel, number FROM (
                 SELECT notice_id, channel, number FROM attempt
                  WHERE notice_id >= %(first)s AND notice_id < %(last)s
                  ORDER BY notice_id DESC, channel DESC, number DESC LIMIT %(scanned)s) newest
              WHERE newest.channel = c.channel
              ORDER BY notice_id DESC, channel DESC, number DESC LIMIT %(most)s) p)
SELECT NOT EXISTS (SELECT FROM picked GROUP BY channel HAVING count(*) >= %(most)s)
           AND NOT EXISTS (SELECT FROM attempt
                            WHERE notice_id >= %(first)s AND notice_id < %(last)s
                            ORDER BY notice_id DESC OFFSET %(scanned)s LIMIT 1) AS all_read,
       a.channel, a.started_at,
       CASE WHEN a.number = 1 THEN extract(epoch FROM a.started_at - CASE
            WHEN d.requeued_at <= a.started_at THEN d.requeued_at
            ELSE n.created_at END)::float8 END AS queue_s,
       CASE WHEN a.outcome <> 'unknown' AND a.replay_started_at IS NULL
            THEN extract(epoch FROM a.finished_at - a.started_at)::float8 END AS answer_s,
       a.outcome = 'unknown' AND a.call_ended AND a.reason = 'timeout' AS timed_out,
       a.outcome = 'accepted' AND NOT d.final_acceptance AND n.expires_at <= clock.now
           AND (told.heard_at IS NOT NULL OR NOT coalesce(told.failed, false)) AS over,
       CASE WHEN told.arrived_at < a.finished_at THEN 0
            ELSE extract(epoch FROM told.arrived_at - a.finished_at) END::float8 AS arrived_s,
       CASE WHEN told.heard_at < a.finished_at THEN 0
            ELSE extract(epoch FROM told.heard_at - a.finished_at) END::float8 AS heard_s
  FROM picked p CROSS JOIN clock
  CROSS JOIN LATERAL (
      SELECT * FROM attempt x WHERE x.notice_id = p.notice_id AND x.channel = p.channel
         AND x.number = p.number OFFSET 0) a
  CROSS JOIN LATERAL (
      SELECT created_at, expires_at FROM notice x WHERE x.notice_id = p.notice_id OFFSET 0) n
  CROSS JOIN LATERAL (
      SELECT requeued_at, final_acceptance FROM delivery x
       WHERE x.notice_id = p.notice_id AND x.channel = p.channel OFFSET 0) d
  LEFT JOIN LATERAL (
      SELECT min(least(r.occurred_at, r.received_at))
                 FILTER (WHERE r.status = 'delivered') AS arrived_at,
             min(r.received_at) FILTER (WHERE r.status = 'delivered') AS heard_at,
             bool_or(r.status = 'failed') AS failed
        FROM receipt r
       WHERE r.notice_id = a.notice_id AND r.channel = a.channel AND r.attempt = a.number) told
    ON a.outcome = 'accepted'
 WHERE a.started_at >= %(since)s AND a.started_at < %(until)s
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """How many attempts of a channel were read, and when the oldest and the newest began.

    Where many are sent, the newest thousand are the last minutes and not the whole window.
    """

    attempts: int
    oldest_at: datetime
    newest_at: datetime


@dataclass(frozen=True, slots=True)
class Latencies:
    """What was measured, and of what; `all_read` unless the window may hold more.

    `samples` has the channels of which there was an attempt; `most` were read of each at most.
    """

    measured: Measured
    since: datetime
    until: datetime
    samples: Mapping[Channel, Sample]
    most: int
    all_read: bool

    @property
    def attempts(self) -> int:
        """Over all channels."""
        return sum(each.attempts for each in self.samples.values())


def load_latencies(
    connection: PooledConnection, since: datetime, until: datetime, most: int = MOST
) -> Latencies:
    """The waits of the attempts that began in the window, the newest `most` of each channel."""
    values = {
        "first": first_id(since - SLACK),
        "last": first_id(until + SLACK),
        "since": since,
        "until": until,
        "most": most,
        "scanned": SCANNED,
    }
    rows = connection.execute(LATENCIES, values).fetchall()
    by_channel = {each: [row for row in rows if row["channel"] == each] for each in Channel}
    return Latencies(
        measured=Measured(
            queue=_each(by_channel, lambda rows: _waits(rows, "queue_s")),
            provider=_each(by_channel, _answers),
            carrier=_each(by_channel, lambda rows: _ways(rows, "arrived_s")),
            news=_each(by_channel, lambda rows: _ways(rows, "heard_s")),
        ),
        since=since,
        until=until,
        samples={channel: _sample(rows) for channel, rows in by_channel.items() if rows},
        most=most,
        all_read=not rows or rows[0]["all_read"],
    )


def first_id(moment: datetime) -> UUID:
    """The least notice id that could have been made at `moment` (UUIDv7, RFC 9562)."""
    milliseconds = max(int(moment.timestamp() * 1000), 0)
    return UUID(int=milliseconds << 80)


Rows = list[dict[str, Any]]


def _each(
    by_channel: Mapping[Channel, Rows], of: Callable[[Rows], Waits]
) -> Mapping[Channel, Waits]:
    return {channel: of(rows) for channel, rows in by_channel.items()}


def _sample(rows: Rows) -> Sample:
    began = [row["started_at"] for row in rows]
    return Sample(len(rows), min(began), max(began))


def _waits(rows: Rows, name: str, never_ended: int = 0) -> Waits:
    return Waits(sorted(row[name] for row in rows if row[name] is not None), never_ended)


def _answers(rows: Rows) -> Waits:
    return _waits(rows, "answer_s", sum(bool(row["timed_out"]) for row in rows))


def _ways(rows: Rows, name: str) -> Waits:
    """A message that was accepted and never reported is a wait that did not end."""
    over = [row for row in rows if row["over"]]
    return _waits(over, name, sum(row[name] is None for row in over))
