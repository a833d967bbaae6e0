"""What was counted and sampled, minute by minute, and which minutes nobody counted.

The cost follows the minutes that are asked for; what looks back further than `NEAR` reads whole
hours, which are kept beside them. A minute is known where a span covers it; one
that no span covers is a gap and never nought. The samples of the queue have gaps of their own,
because nobody can take them afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from sys import intern
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
NEAR: Final = timedelta(hours=3)
SLACK: Final = timedelta(seconds=45)
"""A counter that was heard of so lately is at work, so the present minute counts as known."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What the numbers are narrowed to; None leaves a part open.

    Counts that have no channel (events created, callbacks refused) stay as they are under one.
    """

    channel: str | None = None
    region: str | None = None
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """The queue at its worst in a minute: how many were due, and how long they had waited (s)."""

    waiting: int = 0
    p50_s: float = 0.0
    p95_s: float = 0.0
    max_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Minute:
    """One minute. `counts` by signal; None where nobody counted, as `queue` where none sampled."""

    at: datetime
    counts: Mapping[str, int] | None = None
    queue: Waits | None = None

    def count(self, *signals: str) -> int | None:
        """The sum of these signals, None where the minute is not known."""
        if self.counts is None:
            return None
        total = 0
        for each in signals:
            total += self.counts.get(each, 0)
        return total


@dataclass(frozen=True, slots=True)
class Levels:
    """What was open in each sampled minute, by minute."""

    pending: Mapping[datetime, int] = field(default_factory=dict)
    unknown: Mapping[datetime, int] = field(default_factory=dict)


# One row a minute, so that a day of them is read in a moment. Totals know no region.
_COUNTS: Final = """
    SELECT minute, array_agg(signal) AS signals, array_agg(n) AS counts FROM {table}
     WHERE minute >= %(since)s AND minute < %(until)s
       AND (%(channel)s::text IS NULL OR channel IN ('', %(channel)s))
       AND (%(template)s::text IS NULL OR template = %(template)s) {region}
     GROUP BY minute
"""
_IN_TOTAL: Final = _COUNTS.format(table="rollup_total", region="")
_IN_REGION: Final = _COUNTS.format(table="rollup_count", region="AND region = %(region)s")
_QUEUE: Final = """
    SELECT l.minute, q.waiting, q.p50_s, q.p95_s, q.max_s
      FROM rollup_level l
      LEFT JOIN rollup_queue q ON q.minute = l.minute
           AND q.minute >= %(since)s AND q.minute < %(until)s
           AND q.channel = coalesce(%(channel)s, '*') AND q.region = coalesce(%(region)s, '*')
           AND q.template = coalesce(%(template)s, '*')
     WHERE l.minute >= %(since)s AND l.minute < %(until)s
"""
_LEVELS: Final = """
    SELECT minute, pending, unknown FROM rollup_level
     WHERE minute >= %(since)s AND minute < %(until)s
"""
_SPANS: Final = """
    SELECT began_at, CASE WHEN counted_until <= db_now() - %(slack)s THEN counted_until END
           AS counted_until
      FROM rollup_span WHERE counted_until > %(since)s AND began_at < %(until)s
"""
_TREND: Final = """
    SELECT floor(extract(epoch FROM {time} - %(since)s)
                 / extract(epoch FROM %(width)s::interval))::int AS place,
           reason, sum(n)::bigint AS n
      FROM {table}
     WHERE {time} >= %(since)s AND {time} < %(until)s AND signal = ANY (%(signals)s)
       AND (%(region)s::text IS NULL OR region = %(region)s)
       AND (%(provider)s::text IS NULL OR provider = %(provider)s)
     GROUP BY place, reason
"""
_REGIONS: Final = """
    SELECT DISTINCT region FROM {table}
     WHERE {time} >= %(since)s AND {time} < %(until)s AND signal = ANY (%(signals)s)
       AND region <> '' ORDER BY region
"""
_DIMENSIONS: Final = """
    SELECT array_remove(array_agg(DISTINCT region ORDER BY region), '') AS regions,
           array_remove(array_agg(DISTINCT template ORDER BY template), '') AS templates
      FROM {table} WHERE {time} >= %(since)s AND {time} < %(until)s AND signal = 'created'
"""
_BY_MINUTE: Final = {"table": "rollup_count", "time": "minute"}
_BY_HOUR: Final = {"table": "rollup_hour", "time": "hour"}


@dataclass(frozen=True, slots=True)
class Trend:
    """Counts by reason in intervals of one width.

    `known` says of which intervals all was counted, `touched` of which ones a part was.
    """

    by_reason: Mapping[str, Mapping[int, int]]
    known: tuple[bool, ...]
    touched: tuple[bool, ...]
    since: datetime
    width: timedelta

    def values(self, reason: str) -> list[int | None]:
        """One number an interval, None where nobody counted any of it."""
        counts = self.by_reason.get(reason, {})
        return [
            counts.get(place, 0 if touched else None) for place, touched in enumerate(self.touched)
        ]


Spans = Sequence[tuple[datetime, datetime | None]]
"""Covered times; None for an end that moves with the clock."""


def minutes_between(since: datetime, until: datetime) -> list[datetime]:
    """The minutes that begin in the range."""
    begin = since.replace(second=0, microsecond=0)
    if begin < since:
        begin += MINUTE
    return [begin + number * MINUTE for number in range(max(0, -((begin - until) // MINUTE)))]


def load_spans(connection: PooledConnection, since: datetime, until: datetime) -> Spans:
    """The spans that touch the range."""
    rows = connection.execute(_SPANS, {"since": since, "until": until, "slack": SLACK})
    return [(row["began_at"], row["counted_until"]) for row in rows]


def is_known(begin: datetime, spans: Spans, width: timedelta = MINUTE) -> bool:
    """Whether a span covers the whole interval, or as much of it as has passed."""
    return any(
        began <= begin and (until is None or begin + width <= until) for began, until in spans
    )


def load_minutes(
    connection: PooledConnection, since: datetime, until: datetime, narrowing: Narrowing
) -> tuple[Minute, ...]:
    """Every minute that begins in the range, known or not."""
    values = {
        "since": since, "until": until, "channel": narrowing.channel,
        "region": narrowing.region, "template": narrowing.template,
    }  # fmt: skip
    query = _IN_TOTAL if narrowing.region is None else _IN_REGION
    counted = connection.execute(query, values).fetchall()
    counts = {row["minute"]: _added(row["signals"], row["counts"]) for row in counted}
    queue = {
        row["minute"]: Waits()
        if row["waiting"] is None
        else Waits(row["waiting"], row["p50_s"], row["p95_s"], row["max_s"])
        for row in connection.execute(_QUEUE, values).fetchall()
    }
    spans = load_spans(connection, since, until)
    return tuple(
        Minute(at, counts.get(at, {}) if is_known(at, spans) else None, queue.get(at))
        for at in minutes_between(since, until)
    )


def _added(signals: Sequence[str], counts: Sequence[int]) -> Mapping[str, int]:
    """Sums by signal; here and not in the statement, where it costs several times as much.

    Each name is there once, which halves what is kept of an hour.
    """
    sums: dict[str, int] = {}
    for name, n in zip(map(intern, signals), counts, strict=True):
        sums[name] = sums.get(name, 0) + n
    return sums


def load_levels(connection: PooledConnection, since: datetime, until: datetime) -> Levels:
    """What was open in each sampled minute of the range."""
    rows = connection.execute(_LEVELS, {"since": since, "until": until}).fetchall()
    return Levels(
        {row["minute"]: row["pending"] for row in rows},
        {row["minute"]: row["unknown"] for row in rows},
    )


def load_trend(
    connection: PooledConnection,
    since: datetime,
    width: timedelta,
    length: int,
    signals: Sequence[str],
    narrowed: Mapping[str, str | None] | None = None,
) -> Trend:
    """`length` intervals from `since` on; `narrowed` may name a region and a provider."""
    until = since + length * width
    narrow = {"region": None, "provider": None, **(narrowed or {})}
    values = {**narrow, "since": since, "until": until, "width": width, "signals": list(signals)}
    in_hours = width % HOUR == timedelta() and since == hour_of(since)
    rows = connection.execute(_TREND.format(**_BY_HOUR if in_hours else _BY_MINUTE), values)
    counts: dict[str, dict[int, int]] = {}
    for row in rows:
        counts.setdefault(row["reason"], {})[row["place"]] = row["n"]
    spans = load_spans(connection, since, until)
    begins = [since + place * width for place in range(length)]
    known = tuple(is_known(begin, spans, width) for begin in begins)
    touched = tuple(
        any(began < begin + width and (end is None or end > begin) for began, end in spans)
        for begin in begins
    )
    return Trend(counts, known, touched, since, width)


def load_regions(
    connection: PooledConnection, since: datetime, until: datetime, signals: Sequence[str]
) -> tuple[str, ...]:
    """The regions that these signals were met in, in the range or in the hours it touches."""
    query, begin = _by_distance(_REGIONS, since, until)
    values = {"since": begin, "until": until, "signals": list(signals)}
    return tuple(row["region"] for row in connection.execute(query, values))


def load_dimensions(
    connection: PooledConnection, since: datetime, until: datetime
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Regions and templates of the events created in the range, or in the hours it touches."""
    query, begin = _by_distance(_DIMENSIONS, since, until)
    row = connection.execute(query, {"since": begin, "until": until}).fetchone()
    assert row is not None  # noqa: S101 - an aggregate has one row
    return tuple(row["regions"] or ()), tuple(row["templates"] or ())


def hour_of(moment: datetime) -> datetime:
    """The whole hour that it lies in, as the counts have it."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _by_distance(query: str, since: datetime, until: datetime) -> tuple[str, datetime]:
    """The statement over minutes, or over hours where the range is long; and where to begin."""
    if until - since <= NEAR:
        return query.format(**_BY_MINUTE), since
    return query.format(**_BY_HOUR), hour_of(since)
