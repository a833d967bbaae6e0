"""The limits that alert rules and pages judge by: one table, the policy's, for a token's life.

A limit that is a share is one of a token's life; see `notifier.domain.policy_alerts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notifier.domain.policy_alerts import ALERT_DEFAULTS
from notifier.domain.policy_limits import within_limits
from notifier.store.reads.incident import load_alert_values
from notifier.store.reads.policies import learnt_life_s
from notifier.store.reads.signals import LONGEST_LIFE_S, USUAL_LIFE_S

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class Limits:
    """The policy's alert values for tokens of `life_s`; `period_of` gives a sweep's period (s)."""

    life_s: float
    at: Mapping[str, float]
    period_of: Callable[[str], float] = lambda _: 5.0

    def share_s(self, name: str, cap: str | None = None) -> float:
        """A share of the life in seconds, not above its cap."""
        seconds = self.at[name] * self.life_s
        return min(seconds, self.at[cap]) if cap else seconds

    @property
    def hold_s(self) -> float:
        """How long a level must stand."""
        return self.share_s("hold_share")

    @property
    def moment_s(self) -> float:
        """A hold that only has to outlast a passing state: two looks."""
        return self.hold_s / 3

    @property
    def close_s(self) -> float:
        """How long an episode must be clear before it has ended."""
        return self.share_s("close_share")

    @property
    def queue_age_s(self) -> float:
        """How old ready work may become."""
        return self.share_s("queue_age_share", "queue_age_s")

    @property
    def scheduler_silent_s(self) -> float:
        """How long a frequent sweep may go without a good end."""
        return self.share_s("scheduler_silent_share", "scheduler_silent_s")


def limits_of(
    alert: Mapping[str, float], life_s: float, period_of: Callable[[str], float] | None = None
) -> Limits:
    """The limits under a policy's alert table, missing values filled in."""
    at = {**ALERT_DEFAULTS, **alert}
    return Limits(life_s, at, period_of) if period_of else Limits(life_s, at)


def in_force(connection: PooledConnection) -> Limits:
    """As the rules judge by them now: the policy in force, and the life that they last found."""
    alert = within_limits({"alert": load_alert_values(connection)})["alert"]
    life_s = alert.get("life_s") or learnt_life_s(connection) or USUAL_LIFE_S
    return limits_of(alert, min(life_s, LONGEST_LIFE_S))
