"""Minutes as `rollups.load_minutes` has them, with the hours that are over kept in memory.

An hour never changes once a span of the counter covers it and ten minutes after it: a
transaction is ended long before it could commit that late, and nobody samples the past. So a
page over a day reads its newest hour, and the others once in a process. What is kept belongs to
its span; after a restore a new one begins.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Final

from notifier.store.reads import rollups
from notifier.store.reads.rollups import HOUR, Minute, Narrowing, hour_of

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

SETTLED_AFTER: Final = timedelta(minutes=10)
MOST: Final = 240
"""Hours kept: ten days, each about 30 kB."""

# Unlike in `rollups`, the end is where the counter truly stands: an hour is over by that alone.
_SPANS: Final = """
    SELECT began_at, counted_until FROM rollup_span
     WHERE counted_until > %(since)s AND began_at < %(until)s
"""

Row = Mapping[str, datetime]
_Key = tuple[datetime, datetime, Narrowing]


class CountedHours:
    """The hours that one process keeps of one database, the least lately used going first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[_Key, tuple[Minute, ...]] = OrderedDict()
        self._lock = Lock()

    def load_minutes(
        self, connection: PooledConnection, since: datetime, until: datetime, narrowing: Narrowing
    ) -> tuple[Minute, ...]:
        """Every minute that begins in the range, known or not."""
        spans = connection.execute(_SPANS, {"since": since, "until": until}).fetchall()
        keys = {hour: _key(hour, narrowing, spans) for hour in _hours(since, until)}
        found = {hour: kept for hour, key in keys.items() if key and (kept := self._get(key))}
        for begin, end in _runs(hour for hour in keys if hour not in found):
            minutes = rollups.load_minutes(connection, begin, end, narrowing)
            for hour, part in groupby(minutes, key=lambda minute: hour_of(minute.at)):
                found[hour] = tuple(part)
                if key := keys[hour]:
                    self._keep(key, found[hour])
        return tuple(
            minute for hour in keys for minute in found[hour] if since <= minute.at < until
        )

    def _get(self, key: _Key) -> tuple[Minute, ...] | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: _Key, minutes: tuple[Minute, ...]) -> None:
        with self._lock:
            self._kept[key] = minutes
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def _hours(since: datetime, until: datetime) -> Iterator[datetime]:
    hour = hour_of(since)
    while hour < until:
        yield hour
        hour += HOUR


def _key(hour: datetime, narrowing: Narrowing, spans: Sequence[Row]) -> _Key | None:
    """What an hour is kept under, None while it may change."""
    over = hour + HOUR + SETTLED_AFTER
    for span in spans:
        if span["began_at"] <= hour and over <= span["counted_until"]:
            return hour, span["began_at"], narrowing
    return None


def _runs(hours: Iterable[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """Neighbouring hours as one range each."""
    begin = end = None
    for hour in hours:
        if begin is None or end is None:
            begin = hour
        elif hour != end:
            yield begin, end
            begin = hour
        end = hour + HOUR
    if begin is not None and end is not None:
        yield begin, end
