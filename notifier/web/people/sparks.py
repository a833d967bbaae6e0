"""The past hour of the home page's numbers, a bar a minute, each with its ceiling.

A bar stands for what the number beside it would have been in that minute, so that the last bar
and the number agree: levels are as sampled, failures and expiries are sums over their windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from notifier.signals import thresholds
from notifier.signals.thresholds import Ceilings
from notifier.store.reads import rollups
from notifier.store.reads.incident import load_alert_values
from notifier.store.reads.rollups import MINUTE, Levels, Minute, Narrowing
from notifier.web.people import charts
from notifier.web.people.charts import Spark, Value

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

HOUR: Final = timedelta(hours=1)
FAILURE_SIGNALS: Final = ("refused", "failed", "not_accepted", "unmapped", "late_failure")
"""What the page of channel failures lists."""


@dataclass(frozen=True, slots=True)
class Sparks:
    """One row of bars for each number, and the ceilings that are drawn in them."""

    pending: Spark
    unknown: Spark
    failures: Spark
    expired: Spark
    ceilings: Ceilings


def load_sparks(connection: PooledConnection, now: datetime) -> Sparks:
    """The hour up to the last minute that is over."""
    until = now.replace(second=0, microsecond=0)
    minutes = rollups.load_minutes(connection, until - 2 * HOUR, until, Narrowing())
    levels = rollups.load_levels(connection, until - HOUR, until)
    return build(minutes, levels, thresholds.ceilings(load_alert_values(connection)))


def build(minutes: Sequence[Minute], levels: Levels, ceilings: Ceilings) -> Sparks:
    """`minutes` are those of two hours: a sum over an hour needs the hour before."""
    hour = [each.at for each in minutes][-int(HOUR / MINUTE) :]
    return Sparks(
        charts.spark(_at(levels.pending, hour), ceilings.pending),
        charts.spark(_at(levels.unknown, hour), ceilings.unknown),
        charts.spark(sums(minutes, FAILURE_SIGNALS, 15)[-60:], ceilings.failures_15_min),
        charts.spark(sums(minutes, ("expired",), 60)[-60:], ceilings.expired_1_h),
        ceilings,
    )


def sums(minutes: Sequence[Minute], signals: tuple[str, ...], window: int) -> list[Value]:
    """Sums over the window up to each minute; a minute that is not known has none."""
    counts = [each.count(*signals) for each in minutes]
    return [
        None
        if count is None
        else sum(each or 0 for each in counts[max(0, at - window + 1) : at + 1])
        for at, count in enumerate(counts)
    ]


def _at(level: Mapping[datetime, int], minutes: Sequence[datetime]) -> list[Value]:
    return [level.get(each) for each in minutes]
