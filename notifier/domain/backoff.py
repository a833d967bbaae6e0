"""When to try again: growing waits with jitter, never at or past the stop time.

Randomness is handed in (a function giving a number from 0 up to 1), so that a test holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from notifier.domain.policy import Policy, nth_delay

LINK_DELAYS_S: Final = (1.0, 2.0, 5.0, 10.0)
"""Waits after an unanswered link request; the last repeats (contract, section 3)."""

LINK_JITTER: Final = 0.2
"""Share by which a link wait is stretched or shrunk."""

Randomness = Callable[[], float]


def jittered(delay_s: float, share: float, rand: Randomness) -> float:
    """`delay_s` moved by up to `share` of itself, either way (seconds)."""
    return delay_s * (1 + share * (2 * rand() - 1))


def next_retry_at(
    policy: Policy,
    *,
    failures: int,
    now: datetime,
    stop_at: datetime,
    rand: Randomness,
    asked_wait_s: float = 0.0,
) -> datetime | None:
    """When the delivery is due again after its `failures`-th attempt that was not accepted.

    `asked_wait_s` is the wait a provider asked for; a longer one than ours is honoured. None
    means that no time is left: the wait would reach the stop time.
    """
    delay = max(policy.retry_delay(failures), asked_wait_s)
    spread = max(jittered(delay, policy.retry_jitter, rand), asked_wait_s)
    return _inside(now, stop_at, spread, delay)


def next_link_try_at(
    *, failures: int, now: datetime, stop_at: datetime, rand: Randomness
) -> datetime | None:
    """When to ask for the link again after `failures` requests without a usable answer.

    None means that the stop time comes first.
    """
    delay = nth_delay(LINK_DELAYS_S, failures)
    return _inside(now, stop_at, jittered(delay, LINK_JITTER, rand), delay)


def _inside(now: datetime, stop_at: datetime, spread_s: float, plain_s: float) -> datetime | None:
    """The spread moment, else the plain one (jitter alone never costs the last try)."""
    try:
        moments = [now + timedelta(seconds=wait) for wait in (spread_s, plain_s)]
    except OverflowError:
        return None
    return next((moment for moment in moments if moment < stop_at), None)
