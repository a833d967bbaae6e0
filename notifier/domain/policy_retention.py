"""The policy's retention table: its values in days, and what would make it useless as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

RETENTION_DEFAULTS: Final[dict[str, float]] = {
    "contact_days": 30.0,
    "detail_days": 90.0,
    "trail_days": 400.0,
    "rollup_days": 35.0,
}
"""Every key with its built-in value."""

LEAST_DETAIL_DAYS: Final = 7.0
"""Providers repeat a callback for days, and lists and measured latencies look back a week."""

LEAST_DAYS: Final[dict[str, float]] = {
    "contact_days": 1.0,
    "detail_days": LEAST_DETAIL_DAYS,
    "trail_days": 1.0,
    "rollup_days": 7.0,
}
"""What a notice is looked up by outlasts its life; counts, the week that lists look back."""

MOST_DAYS: Final = 36_500.0
"""A hundred years stand for "never": what is longer leaves the range of dates."""


def retention_contradictions(days: Mapping[str, float]) -> Iterator[tuple[str, str, str]]:
    """Times that keep too little to work with, or that no calendar holds."""
    for name, value in days.items():
        if value > MOST_DAYS:
            sentence = f"{name} {value:g} is above {MOST_DAYS:g}, which is a hundred years"
            yield f"/retention/{name}", "too_long", sentence
    for name, least in LEAST_DAYS.items():
        if name != "detail_days" and days[name] < least:
            sentence = f"{name} {days[name]:g} must be at least {least:g}"
            yield f"/retention/{name}", "too_short", sentence
    if days["detail_days"] < LEAST_DETAIL_DAYS:
        yield (
            "/retention/detail_days",
            "detail_too_short",
            (
                f"detail_days {days['detail_days']:g} must be at least {LEAST_DETAIL_DAYS:g}: "
                "callbacks are repeated for days, and lists look back a week"
            ),
        )
