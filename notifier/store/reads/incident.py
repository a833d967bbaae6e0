"""What stands beside the numbers of an incident: what was changed meanwhile, and one notice alone.

A marker is something that somebody did, was told of, or that was first seen: halts, policy
revisions, template revisions, versions of the product, alerts. Another source is another block of
`_MARKERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.store.reads.outside_text import shown
from notifier.store.reads.rollups import MINUTE, Minute, Waits, minutes_between
from notifier.store.rollups import EXPIRED, SHOWN

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

MOST_MARKERS: Final = 30


class MarkerKind(StrEnum):
    """What a marker tells of."""

    HALT_ENGAGED = "halt_engaged"
    HALT_RELEASED = "halt_released"
    TEMPLATE = "template"
    POLICY = "policy"
    VERSION = "version"
    ALERT = "alert"


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that changed at this time; `by` is None where nobody did it by hand.

    An alert has its `episode_id`.
    """

    at: datetime
    kind: MarkerKind
    name: str
    by: str | None
    episode_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class NoticeTimes:
    """The life of the notice that an event has."""

    created_at: datetime
    expires_at: datetime


_MARKERS: Final = """
    SELECT engaged_at AS at, 'halt_engaged' AS kind, scope AS name, engaged_by AS by,
           NULL::uuid AS episode_id FROM halt
    UNION ALL
    SELECT released_at, 'halt_released', scope, released_by, NULL FROM halt
    UNION ALL
    SELECT first_seen, 'template', template_id || '@' || revision, NULL, NULL
      FROM template_revision
    UNION ALL
    SELECT created_at, 'policy', revision::text, author, NULL FROM policy_revision
    UNION ALL
    SELECT min(started_at), 'version', version, NULL, NULL FROM process GROUP BY version
    UNION ALL
    SELECT opened_at, 'alert', rule || CASE key WHEN '' THEN '' ELSE ' (' || key || ')' END, NULL,
           episode_id
      FROM alert_episode WHERE state <> 'held'
"""
_IN_RANGE: Final = f"""
    SELECT * FROM ({_MARKERS}) AS marker WHERE at >= %(since)s AND at < %(until)s
     ORDER BY at LIMIT {MOST_MARKERS}
"""
_ALERT: Final = """
    SELECT coalesce(document -> 'alert', '{}') AS alert FROM policy_revision
     ORDER BY revision DESC LIMIT 1
"""
_TIMES: Final = """
    SELECT n.created_at, n.expires_at FROM admission a JOIN notice n USING (notice_id)
     WHERE a.event_id = %s
"""
_STEPS: Final = """
    SELECT t.recorded_at, t.channel, t.from_state, t.to_state
      FROM transition t JOIN admission a USING (notice_id)
     WHERE a.event_id = %s AND t.channel IS NOT NULL ORDER BY t.seq
"""
_COUNTS: Final = f"""
    WITH fresh AS (
        SELECT t.*, date_trunc('minute', t.recorded_at) AS minute,
               t.from_state IS DISTINCT FROM t.to_state AS moved, coalesce(e.region, '') AS region
          FROM admission a JOIN transition t USING (notice_id)
          LEFT JOIN reset_event e USING (notice_id)
         WHERE a.event_id = %(event)s), {SHOWN}, {EXPIRED}
    SELECT minute, signal, count(*)::int AS n FROM (
        SELECT minute, signal, channel FROM shown UNION ALL
        SELECT minute, 'expired', channel FROM lost) AS told
     WHERE %(channel)s::text IS NULL OR channel IS NULL OR channel = %(channel)s
     GROUP BY minute, signal
"""


def load_markers(
    connection: PooledConnection, since: datetime, until: datetime
) -> tuple[Marker, ...]:
    """What changed in the range, the earliest first."""
    rows = connection.execute(_IN_RANGE, {"since": since, "until": until})
    return tuple(
        Marker(
            row["at"], MarkerKind(row["kind"]), shown(row["name"]), shown(row["by"]),
            row["episode_id"],
        )
        for row in rows
    )  # fmt: skip


def load_alert_values(connection: PooledConnection) -> Mapping[str, float]:
    """The alert table of the policy in force."""
    row = connection.execute(_ALERT).fetchone()
    values: Mapping[str, float] = row["alert"] if row else {}
    return values


def load_notice_times(connection: PooledConnection, event_id: str) -> NoticeTimes | None:
    """When the notice of this event lived; None where there is none."""
    row = connection.execute(_TIMES, [event_id]).fetchone()
    return NoticeTimes(**row) if row else None


def load_notice_minutes(
    connection: PooledConnection,
    event_id: str,
    since: datetime,
    until: datetime,
    channel: str | None = None,
) -> tuple[Minute, ...]:
    """The minutes of one notice, from its own trail: every one of them is known."""
    counts: dict[datetime, dict[str, int]] = {}
    for row in connection.execute(_COUNTS, {"event": event_id, "channel": channel}):
        counts.setdefault(row["minute"], {})[row["signal"]] = row["n"]
    steps = connection.execute(_STEPS, [event_id]).fetchall()
    waits = [each for each in _waits(steps) if channel in {None, each.channel}]
    return tuple(
        Minute(at, counts.get(at, {}), _queue_in(at, waits)) for at in minutes_between(since, until)
    )


@dataclass(frozen=True, slots=True)
class _Wait:
    channel: str
    began: datetime
    ended: datetime | None


def _waits(steps: list[dict[str, Any]]) -> list[_Wait]:
    """The times that deliveries spent in the queue."""
    waits: list[_Wait] = []
    begun: dict[str, datetime] = {}
    for step in steps:
        channel, moved = step["channel"], step["from_state"] != step["to_state"]
        if not moved:
            continue
        if channel in begun:
            waits.append(_Wait(channel, begun.pop(channel), step["recorded_at"]))
        if step["to_state"] == "queued":
            begun[channel] = step["recorded_at"]
    return waits + [_Wait(channel, began, None) for channel, began in begun.items()]


def _queue_in(minute: datetime, waits: list[_Wait]) -> Waits:
    end = minute + MINUTE
    here = [each for each in waits if each.began < end and (not each.ended or each.ended > minute)]
    ages = [min(each.ended or end, end) - each.began for each in here]
    most = max(ages, default=timedelta()).total_seconds()
    return Waits(len(here), most, most, most)
