"""Times and spans as people read them: to the second, zone beside, never negative in silence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from notifier.domain.zones import zone_label

_MINUTE: Final = 60
_HOUR: Final = 3_600
_DAY: Final = 86_400


def iso(moment: datetime) -> str:
    """For the `datetime` attribute: `2026-01-31T09:30:00Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def clock(moment: datetime, today: datetime | None = None, zone: tzinfo = UTC) -> str:
    """`14:04:10 UTC`; with the day before it where that is not the day of `today` in the zone."""
    at = moment.astimezone(zone)
    text = f"{at:%H:%M:%S} {zone_label(at)}"
    if today is not None and today.astimezone(zone).date() == at.date():
        return text
    return f"{at.day} {at:%b} {at.year}, {text}"


def span(length: timedelta) -> str:
    """`50 seconds`, `3:07`, `1:02:09`, `2 d 03:00`; the sign is dropped: say which way it goes."""
    seconds = int(abs(length).total_seconds())
    if seconds < _MINUTE:
        return f"{seconds} second{'' if seconds == 1 else 's'}"
    return stopwatch(length)


def long_span(length: timedelta) -> str:
    """As `span`, with what its first number counts: `3:07 minutes`, `1:02:09 hours`."""
    seconds = int(abs(length).total_seconds())
    unit = " minutes" if _MINUTE <= seconds < _HOUR else " hours" if _HOUR <= seconds < _DAY else ""
    return span(length) + unit


def stopwatch(length: timedelta) -> str:
    """As `span`, but `0:50` below a minute: for columns of offsets."""
    seconds = int(abs(length).total_seconds())
    days, rest = divmod(seconds, _DAY)
    hours, rest = divmod(rest, _HOUR)
    minutes, left = divmod(rest, _MINUTE)
    if days:
        return f"{days} d {hours:02}:{minutes:02}"
    if hours:
        return f"{hours}:{minutes:02}:{left:02}"
    return f"{minutes}:{left:02}"


def rough(length: timedelta) -> str:
    """`4 s`, `12 min`, `3 h`, `2 days`: for an age beside an exact time."""
    seconds = int(abs(length).total_seconds())
    if seconds < 2 * _MINUTE:
        return f"{seconds} s"
    if seconds < 2 * _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR} h"
    return f"{seconds // _DAY} days"


def ago(moment: datetime, now: datetime) -> str:
    """`6 min ago`, or `in 6 min` for what lies ahead."""
    length = now - moment
    if length < timedelta(0):
        return f"in {rough(length)}"
    return f"{rough(length)} ago"


def left_words(remaining: timedelta, written: Callable[[timedelta], str] = span) -> str:
    """`3:12 left`, `at expiry` or `expired 2:11 earlier`, each span as `written`."""
    if abs(remaining) < timedelta(seconds=1):
        return "at expiry"
    if remaining > timedelta(0):
        return f"{written(remaining)} left"
    return f"expired {written(remaining)} earlier"


def share(part: timedelta, whole: timedelta) -> float:
    """`part` of `whole` between 0 and 1, for a bar."""
    if whole <= timedelta(0):
        return 0.0
    return round(min(1.0, max(0.0, part / whole)), 4)
