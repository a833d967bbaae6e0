"""The past hour of refused callbacks, by provider, with the limit of their alert.

A bar stands for the minutes that the alert sums up, so that bars and limit can be compared; the
alert leaves out what came before the last callback that was believed, the bars do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from notifier.domain.policy_alerts import ALERT_DEFAULTS
from notifier.signals.judgements import RuleName
from notifier.store.reads.incident import load_alert_values
from notifier.store.reads.refused_callbacks import load_refused
from notifier.store.reads.rollups import MINUTE, Minute
from notifier.store.rollups import REFUSED
from notifier.web.people import charts
from notifier.web.people.charts import Spark
from notifier.web.people.sparks import HOUR, sums

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

WINDOW_MIN: Final = 5
LIMIT: Final = "callback_refusals_per_5_min"


@dataclass(frozen=True, slots=True)
class Refusals:
    """One provider's hour; `hour` and `lately` (the last window) are None where nobody counted."""

    provider: str
    spark: Spark
    hour: int | None
    lately: int | None


@dataclass(frozen=True, slots=True)
class RefusedHour:
    """The hour before `until`; `is_counted` says whether any minute of it was."""

    rows: tuple[Refusals, ...]
    limit: float
    window_min: int
    until: datetime
    is_counted: bool


def hour_for(
    rule: str, connection: PooledConnection, now: datetime, provider: str | None = None
) -> RefusedHour | None:
    """What the pages about the rule of refused callbacks draw; None for any other rule.

    The hour up to the last minute that is over: of every provider with any, or of this one.
    """
    if rule != RuleName.CALLBACKS_REFUSED:
        return None
    until = now.replace(second=0, microsecond=0)
    found = load_refused(connection, until - HOUR - (WINDOW_MIN - 1) * MINUTE, until)
    limit = {**ALERT_DEFAULTS, **load_alert_values(connection)}[LIMIT]
    if provider is None:
        named = {name: minutes for name, minutes in found.items() if name}
    else:
        named = {provider: found.get(provider, found[""])}
    rows = tuple(_row(name, minutes, limit) for name, minutes in named.items())
    is_counted = any(each.counts is not None for each in found[""][WINDOW_MIN - 1 :])
    return RefusedHour(rows, limit, WINDOW_MIN, until, is_counted)


def _row(provider: str, minutes: Sequence[Minute], limit: float) -> Refusals:
    bars = sums(minutes, (REFUSED,), WINDOW_MIN)[WINDOW_MIN - 1 :]
    counts = [each.count(REFUSED) for each in minutes[WINDOW_MIN - 1 :]]
    known = [each for each in counts if each is not None]
    lately = bars[-1]
    return Refusals(
        provider,
        charts.spark(bars, limit),
        sum(known) if known else None,
        None if lately is None else int(lately),
    )
