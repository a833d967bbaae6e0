"""Which alert explains which: one trouble is one page, and this says whose page it is.

The owner is the rule that names what somebody has to mend; what follows from it stays quiet from
the owner's crossing on. Where a follower would cross before its owner can, it waits in its own
rule: a lapsed lease is held against what the rescue sweep left behind while it ran, so that dead
workers are the sweeps' page; work taken back waits until an old queue would have shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from notifier.signals.judgements import RuleName, channel_of

SCHEDULER: Final = "scheduler"
"""The key under which all sweeps stand together."""

EXPLAINS: Final[Mapping[RuleName, frozenset[RuleName]]] = {
    RuleName.SWEEP_STALLED: frozenset({
        RuleName.NO_PROGRESS, RuleName.CHECKPOINT_MISSING, RuleName.EXPIRED,
        RuleName.PROVIDER_SILENT, RuleName.QUEUE_AGE, RuleName.EXPIRY_AHEAD, RuleName.RESCUES,
    }),
    RuleName.PROVIDER_PAUSED: frozenset({
        RuleName.NO_PROGRESS, RuleName.QUEUE_AGE, RuleName.EXPIRY_AHEAD, RuleName.CHANNEL_FAILURES,
        RuleName.EXPIRED,
    }),
    RuleName.CALLBACKS_REFUSED: frozenset({RuleName.PROVIDER_SILENT, RuleName.EXPIRED}),
    RuleName.PROVIDER_SILENT: frozenset({RuleName.EXPIRED}),
    RuleName.NO_PROGRESS: frozenset({
        RuleName.RESCUES, RuleName.QUEUE_AGE, RuleName.EXPIRY_AHEAD, RuleName.EXPIRED,
    }),
    RuleName.QUEUE_AGE: frozenset({
        RuleName.RESCUES, RuleName.EXPIRY_AHEAD, RuleName.EXPIRED,
    }),
    RuleName.EXPIRY_AHEAD: frozenset({RuleName.EXPIRED}),
    RuleName.UNKNOWN_RATE: frozenset({
        RuleName.EXPIRED, RuleName.AVOIDABLE_FALLBACKS, RuleName.QUEUE_AGE, RuleName.EXPIRY_AHEAD,
    }),
    RuleName.CHANNEL_FAILURES: frozenset({
        RuleName.EXPIRED, RuleName.QUEUE_AGE, RuleName.EXPIRY_AHEAD,
    }),
}  # fmt: skip
"""A cause, and what is not told beside it. No rule may come back to itself: all would be quiet."""

OF_ONE_SWEEP: Final[Mapping[str, frozenset[RuleName]]] = {
    "rescue": frozenset({RuleName.NO_PROGRESS}),
    "checkpoint": frozenset({RuleName.CHECKPOINT_MISSING}),
    "poll": frozenset({RuleName.PROVIDER_SILENT}),
    "fallback": frozenset({RuleName.EXPIRED}),
}
"""What a single sweep leaves undone where it stalls alone; only the scheduler explains all."""

REMEMBERS: Final[Mapping[RuleName, tuple[str, ...]]] = {
    RuleName.EXPIRED: ("expired", "over"),
    RuleName.AVOIDABLE_FALLBACKS: ("avoidable", "fallback"),
}
"""Rules over an hour, and what they count: once a cause is over, only notices made since."""


def begun_anew() -> tuple[tuple[str, str], ...]:
    """What is counted anew, and the rule after whose alert it is."""
    return tuple(
        (signal, str(cause))
        for rule, signals in REMEMBERS.items()
        for cause, followers in EXPLAINS.items()
        if rule in followers
        for signal in signals
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """An alert that is open, or a limit that is crossed now.

    `over_since`: an open one that is below its limit again explains what it left behind, and
    nothing that began later.
    """

    rule: RuleName
    key: str
    over_since: datetime | None = None

    def explains(self, rule: RuleName, key: str, began: datetime | None = None) -> bool:
        """Whether another crossing is told by this one: the rule follows, and the key is its.

        `began`: since when the other's trouble has lasted, where its value tells.
        """
        if self.over_since and began and began > self.over_since:
            return False
        if self.rule is RuleName.SWEEP_STALLED and self.key != SCHEDULER:
            return rule in OF_ONE_SWEEP.get(self.key, ())
        mine, its = channel_of(self.key), channel_of(key)
        return rule in EXPLAINS.get(self.rule, ()) and (mine is None or its in {None, mine})


def is_explained(
    rule: RuleName, key: str, causes: Iterable[Cause], began: datetime | None = None
) -> bool:
    """Whether one of the causes is told instead."""
    return any(each.explains(rule, key, began) for each in causes)
