"""What time the database thinks it is, known to this process without asking each time.

The database's clock is the only authority. A process keeps the difference between it and a
local clock that never steps, and says that it does not know the time when that difference is
missing or old; whoever would send then does not.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AGE_LIMIT_S = 30.0
"""An offset older than this is not used: quartz drifts, and the database may have moved."""

_CLOCK_ID = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class ClockUnknown(Exception):
    """The process does not know the database's time well enough to start anything."""


def steady() -> float:
    """Seconds on a local clock that nobody can set.

    On Linux it also counts the time for which the machine was suspended, which
    `time.monotonic` leaves out: a lease or an offset must not outlive a closed lid.
    """
    return time.clock_gettime(_CLOCK_ID)


@dataclass(frozen=True, slots=True)
class Offset:
    """One measurement: database time less steady time, and when the question was asked."""

    seconds: float
    measured_at: float
    round_trip_s: float


class DatabaseClock:
    """The database's clock, read through an offset that `refresh` measures.

    The offset is taken from *before* the query, so `now` is never earlier than the database's
    own clock and at most one round trip later. That is the safe side: a stop time is seen as
    passed a little too soon, never too late. Safe to read from any thread while another
    refreshes.
    """

    def __init__(self, age_limit_s: float = AGE_LIMIT_S) -> None:
        self._age_limit_s = age_limit_s
        self._offset: Offset | None = None

    def refresh(self, connection: psycopg.Connection[DictRow]) -> None:
        """Measure the offset anew; database errors pass through and keep the old one."""
        asked_at = steady()
        row = connection.execute("SELECT db_now() AS now").fetchone()
        answered_at = steady()
        if row is None:
            raise ClockUnknown("the database gave no time")
        seconds = (row["now"] - EPOCH).total_seconds() - asked_at
        self._offset = Offset(seconds, asked_at, answered_at - asked_at)

    def now(self) -> datetime:
        """The database's time (UTC, aware). Raises `ClockUnknown` rather than guess."""
        offset, at = self._offset, steady()
        if offset is None:
            raise ClockUnknown("the database's clock was never read")
        age = at - offset.measured_at
        if age > self._age_limit_s:
            raise ClockUnknown(f"the database's clock was last read {math.floor(age)} s ago")
        return EPOCH + timedelta(seconds=offset.seconds + at)

    def age_s(self) -> float | None:
        """Seconds since the last measurement, None before the first."""
        offset = self._offset
        return None if offset is None else steady() - offset.measured_at

    def known(self) -> bool:
        """Whether `now` would answer."""
        age = self.age_s()
        return age is not None and age <= self._age_limit_s
