"""When a number is too high, and which number was first.

Pure: it is given minutes and the policy's alert values, and tells at which minute each signal
first crossed its limit. Pages and alert rules judge by the same table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from notifier.domain.policy_alerts import ALERT_DEFAULTS
from notifier.signals.chance import beats
from notifier.store.reads.rollups import Minute

if TYPE_CHECKING:
    from notifier.signals.limits import Limits


class Signal(StrEnum):
    """What is watched, in the order in which equals are named."""

    COLLECTOR_GAP = "collector_gap"
    RESCUES = "rescues"
    CALLBACKS_REFUSED = "callbacks_refused"
    UNMAPPED = "unmapped"
    FAILURE_SHARE = "failure_share"
    UNKNOWN_SHARE = "unknown_share"
    QUEUE_AGE = "queue_age"
    AVOIDABLE_SHARE = "avoidable_share"
    EXPIRED = "expired"


class Unit(StrEnum):
    """What a value counts."""

    SECONDS = "seconds"
    SHARE = "share"
    COUNT = "count"


OUTCOMES: Final = ("accepted", "refused", "failed", "not_accepted", "unknown")
"""What one start may come to; `delivered` comes on top of an acceptance."""

FAILURES: Final = ("refused", "failed", "not_accepted")


@dataclass(frozen=True, slots=True)
class Rule:
    """A limit. The signal crosses it when its value over the `window` (minutes) reaches `limit`.

    A share is that of `part` in `whole`, and crosses where its `baseline` would give so many less
    often than by `chance`, too.
    """

    signal: Signal
    limit: float
    unit: Unit
    window: int
    part: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    baseline: float = 0.0
    chance: float = 0.0


@dataclass(frozen=True, slots=True)
class Crossing:
    """The first minute in which a signal reached its limit."""

    rule: Rule
    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the big numbers of the home page should stay below."""

    pending: float
    unknown: float
    failures_15_min: float
    expired_1_h: float


GAP_MIN: Final = 2
"""So many minutes that nobody counted are a gap."""


def ceilings(alert: Mapping[str, float]) -> Ceilings:
    """The ceilings under the policy's alert values."""
    at = {**ALERT_DEFAULTS, **alert}
    return Ceilings(
        at["pending_open"], at["unknown_open"], at["failures_per_15_min"],
        4 * at["expired_unsent_per_15_min"],
    )  # fmt: skip


def rules(limits: Limits) -> tuple[Rule, ...]:
    """The rules by the limits that alerts are judged by, over the same windows."""
    at, count = limits.at, Unit.COUNT
    return (
        Rule(Signal.COLLECTOR_GAP, GAP_MIN, count, GAP_MIN),
        Rule(Signal.RESCUES, at["rescues_at_least"], count, 5, ("rescued",)),
        Rule(Signal.CALLBACKS_REFUSED, at["callback_refusals_per_5_min"], count, 5,
             ("callback_refused",)),
        Rule(Signal.UNMAPPED, at["unmapped_per_hour"], count, 60, ("unmapped",)),
        _share(Signal.FAILURE_SHARE, limits, "failure", 5, FAILURES, OUTCOMES),
        _share(Signal.UNKNOWN_SHARE, limits, "unknown", 5, ("unknown",), OUTCOMES),
        Rule(Signal.QUEUE_AGE, limits.queue_age_s, Unit.SECONDS, 1),
        _share(Signal.AVOIDABLE_SHARE, limits, "avoidable", 60, ("avoidable",), ("fallback",)),
        Rule(Signal.EXPIRED, at["expired_unsent_per_15_min"], count, 15, ("expired",)),
    )  # fmt: skip


def _share(
    signal: Signal, limits: Limits, name: str, window: int, part: tuple[str, ...],
    whole: tuple[str, ...],
) -> Rule:  # fmt: skip
    return Rule(
        signal, limits.at[f"{name}_share"], Unit.SHARE, window, part, whole,
        limits.at[f"{name}_baseline"], limits.at["chance"],
    )  # fmt: skip


def first_crossing(rule: Rule, minutes: Sequence[Minute]) -> Crossing | None:
    """Where the signal first reached its limit; None where it never did.

    Minutes before the first one that anybody counted are no gap of the collector's.
    """
    begin = next((place for place, each in enumerate(minutes) if each.counts is not None), None)
    if begin is None or rule.limit <= 0:
        return None
    judged = minutes[begin:]
    for place, value in enumerate(_values(rule, judged)):
        if value is not None and value >= rule.limit:
            return Crossing(rule, _told_by(rule, judged[: place + 1]).at, value)
    return None


def _told_by(rule: Rule, minutes: Sequence[Minute]) -> Minute:
    """The minute that brought the value of the last one.

    A share also grows when what it is a share of leaves the window, in minutes in which nothing
    happened at all.
    """
    if rule.unit is not Unit.SHARE:
        return minutes[-1]
    return next(each for each in reversed(minutes) if each.count(*rule.part))


def first_crossings(by: Sequence[Rule], minutes: Sequence[Minute]) -> tuple[Crossing, ...]:
    """The first crossing of each signal that has one, the earliest first."""
    found = (first_crossing(rule, minutes) for rule in by)
    order = list(Signal)
    return tuple(
        sorted(
            (each for each in found if each),
            key=lambda each: (each.at, order.index(each.rule.signal)),
        )
    )


def _values(rule: Rule, minutes: Sequence[Minute]) -> Sequence[float | None]:
    """The signal's value over the window that ends with each minute.

    None where it is not known, and for a share that crosses nothing.
    """
    if rule.signal is Signal.QUEUE_AGE:
        return [each.queue.p95_s if each.queue else None for each in minutes]
    known = _in_window([each.counts is not None for each in minutes], rule.window)
    if rule.signal is Signal.COLLECTOR_GAP:
        return [min(rule.window, place) - each for place, each in enumerate(known, 1)]
    part = _in_window([each.count(*rule.part) or 0 for each in minutes], rule.window)
    if not any(part):
        return [None] * len(minutes)
    if rule.unit is Unit.COUNT:
        return [float(each) if sure else None for each, sure in zip(part, known, strict=True)]
    whole = _in_window([each.count(*rule.whole) or 0 for each in minutes], rule.window)
    return [
        each / of if _is_too_much(rule, each, of) else None
        for each, of in zip(part, whole, strict=True)
    ]


def _is_too_much(rule: Rule, part: int, whole: int) -> bool:
    """The cheap question first: a day has many windows, and few are near the limit."""
    return (
        whole > 0
        and part / whole >= rule.limit
        and beats(part, whole, rule.baseline, rule.chance)
    )  # fmt: skip


def _in_window(values: Sequence[int], size: int) -> list[int]:
    """The sum of each value and of the `size` - 1 before it, at a cost that knows no size."""
    sums = [0, *accumulate(values)]
    return [upto - sums[max(0, place - size)] for place, upto in enumerate(sums)][1:]
