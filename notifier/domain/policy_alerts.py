"""The policy's alert table: its values, and what would make it useless as a whole.

What is a share here is a share of a token's life: the life that the policy states (`life_s`),
or else the one that nine in ten of the recent events had at least. So one table fits tokens of
five minutes and of an hour. A limit in seconds beside a share is its cap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from notifier.domain.contradiction import Contradiction

ALERT_DEFAULTS: Final[dict[str, float]] = {
    "life_s": 0.0,
    "queue_age_s": 60.0,
    "queue_age_share": 0.1,
    "unknown_age_s": 120.0,
    "lapsed_lease_share": 0.05,
    "scheduler_silent_s": 60.0,
    "scheduler_silent_share": 0.1,
    "database_silent_share": 0.1,
    "provider_silent_share": 0.1,
    "provider_silent_accepted": 10.0,
    "callback_refusals_per_5_min": 10.0,
    "expired_unsent_per_15_min": 1.0,
    "hold_share": 0.05,
    "close_share": 0.5,
    "chance": 1e-6,
    "unknown_baseline": 0.01,
    "unknown_share": 0.1,
    "expired_baseline": 0.005,
    "failure_baseline": 0.05,
    "failure_share": 0.25,
    "avoidable_baseline": 0.05,
    "avoidable_share": 0.25,
    "rescue_baseline": 0.002,
    "rescues_at_least": 5.0,
    "unmapped_per_hour": 1.0,
    "unreadable_per_hour": 3.0,
    "checkpoint_age_s": 5_400.0,
    "pending_open": 1_000.0,
    "unknown_open": 10.0,
    "failures_per_15_min": 20.0,
}
"""Every key with its built-in value. `life_s` nought: learnt from the events."""

A_FIFTH: Final = 0.2
"""The share of a token's life in which silence must be told."""

_TIMED: Final = (
    "queue_age_share",
    "lapsed_lease_share",
    "scheduler_silent_share",
    "database_silent_share",
    "provider_silent_share",
)
_LIMITED: Final = ("unknown", "failure", "avoidable")
_ABOVE_NOUGHT: Final = frozenset(ALERT_DEFAULTS) - {"life_s", "hold_share"}
_MOST_CHANCE: Final = 0.01


def alert_contradictions(alert: Mapping[str, float]) -> Iterator[Contradiction]:
    """Every fault of the whole table, with the arithmetic that failed."""
    yield from _names_and_ranges(alert)
    hold = alert["hold_share"]
    for name in _TIMED:
        if alert[name] + hold > A_FIFTH:
            yield (
                f"/alert/{name}",
                "alert_too_late",
                f"{name} {alert[name]:g} + hold_share {hold:g} is above a fifth of the life",
            )
    for name in _LIMITED:
        baseline, limit = alert[f"{name}_baseline"], alert[f"{name}_share"]
        if baseline >= limit:
            yield (
                f"/alert/{name}_baseline",
                "baseline_above_limit",
                f"{name}_baseline {baseline:g} must be below {name}_share {limit:g}",
            )


def _names_and_ranges(alert: Mapping[str, float]) -> Iterator[Contradiction]:
    for name, value in alert.items():
        if name not in ALERT_DEFAULTS:
            yield f"/alert/{name}", "unknown_key", "there is no such alert value"
        elif value <= 0 and name in _ABOVE_NOUGHT:
            yield f"/alert/{name}", "wrong_value", "must be above 0"
        elif value > _most(name):
            yield f"/alert/{name}", "wrong_value", f"must not be above {_most(name):g}"


def _most(name: str) -> float:
    if name == "chance":
        return _MOST_CHANCE
    return 1.0 if name.endswith(("_share", "_baseline")) else float("inf")
