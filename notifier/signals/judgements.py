"""What a rule says of one key, and how one value is judged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from notifier.domain.policy import EMAIL_PROVIDERS, SMS_PROVIDERS
from notifier.signals.chance import FEWEST
from notifier.signals.thresholds import Unit

BACK_BELOW: Final = 0.8
"""A limit is no longer crossed below this share of it; in between all stays as it is."""


class RuleName(StrEnum):
    """Every rule; the word is also the name of its runbook."""

    DATABASE_UNREACHABLE = "database_unreachable"
    RULES_NOT_JUDGED = "rules_not_judged"
    SWEEP_STALLED = "sweep_stalled"
    PROVIDER_PAUSED = "provider_paused"
    CALLBACKS_REFUSED = "callbacks_refused"
    PROVIDER_SILENT = "provider_silent"
    NO_PROGRESS = "no_progress"
    RESCUES = "rescues"
    QUEUE_AGE = "queue_age"
    EXPIRY_AHEAD = "expiry_ahead"
    UNKNOWN_RATE = "unknown_rate"
    CHANNEL_FAILURES = "channel_failures"
    EXPIRED = "expired"
    AVOIDABLE_FALLBACKS = "avoidable_fallbacks"
    UNMAPPED = "unmapped"
    UNREADABLE = "unreadable"
    CHECKPOINT_MISSING = "checkpoint_missing"
    LOCAL_ACCOUNT_USED = "local_account_used"
    SENDER_DOMAIN_FAILS = "sender_domain_fails"


BY_THEMSELVES: Final = frozenset({RuleName.DATABASE_UNREACHABLE, RuleName.RULES_NOT_JUDGED})
"""What each process notices and tells by itself; no row can be written of them."""


class Level(StrEnum):
    """How a value stands to its limit."""

    ABOVE = "above"
    BETWEEN = "between"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One rule's word on one key. `hold_s`: for how long it must stand before anybody is told."""

    rule: RuleName
    key: str
    level: Level
    value: float
    threshold: float
    unit: Unit
    affected: int
    hold_s: float


@dataclass(frozen=True, slots=True)
class Judged:
    """All judgements of one look; keys that a measured rule does not name are clear."""

    judgements: tuple[Judgement, ...]
    unmeasured: frozenset[RuleName]


def channel_of(key: str) -> str | None:
    """The channel that a key belongs to, where it is one or a provider of one."""
    if key in EMAIL_PROVIDERS:
        return "email"
    if key in SMS_PROVIDERS:
        return "sms"
    return key if key in {"email", "sms"} else None


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one key, to be judged. `affected`: how much work it is about."""

    rule: RuleName
    key: str
    value: float
    threshold: float
    unit: Unit
    affected: int = 0
    hold_s: float = 0.0

    def at(self, level: Level) -> Judgement:
        """The judgement that it stands so."""
        return Judgement(
            self.rule, self.key, level, float(self.value), float(self.threshold), self.unit,
            self.affected, self.hold_s,
        )  # fmt: skip


def by_level(reading: Reading) -> Judgement:
    """Crossed at the threshold; clear well below it."""
    if reading.value >= reading.threshold:
        return reading.at(Level.ABOVE)
    near = reading.value >= reading.threshold * BACK_BELOW
    return reading.at(Level.BETWEEN if near else Level.CLEAR)


def by_chance(reading: Reading, *, unlikely: bool) -> Judgement:
    """Crossed where chance does not explain it; in between while it is above its threshold."""
    if unlikely:
        return reading.at(Level.ABOVE)
    near = reading.value >= reading.threshold and reading.affected >= FEWEST
    return reading.at(Level.BETWEEN if near else Level.CLEAR)
