"""The alert rules: given one look at everything and the policy's limits, which are crossed.

Pure. A rule is *unmeasured* where what it judges is not known: nobody is told that all is well, or
ill, by numbers that nobody took. A rule may be judged for several keys: channels, providers,
regions, sweeps. What another crossing explains is left out by `episodes`.
"""

from __future__ import annotations

from typing import Final

from notifier.signals.judgements import Judged
from notifier.signals.limits import Limits
from notifier.signals.rules_of_counts import BY_COUNTS
from notifier.signals.rules_of_state import BY_STATE
from notifier.store.reads.signals import Readings

COUNTS_YOUNG_S: Final = 60.0
"""Counts older than this are not judged by: what they lack is not nought."""


def judge(seen: Readings, limits: Limits) -> Judged:
    """Every rule on every key that it can be judged for."""
    stale = seen.counted_s is None or seen.counted_s > COUNTS_YOUNG_S
    rules = BY_STATE if stale else {**BY_STATE, **BY_COUNTS}
    found = tuple(each for rule in rules.values() for each in rule(seen, limits))
    return Judged(found, frozenset(BY_COUNTS) if stale else frozenset())
