"""How likely a count is where nothing is wrong: exact tails, so that small numbers are fair.

A ratio says little of three in four; these say how often a baseline alone would give as many.
"""

from __future__ import annotations

import math
from typing import Final

_ENOUGH: Final = 1e-12
"""Terms this much smaller than the sum no longer change it."""
FEWEST: Final = 2
"""So many of a kind are needed before chance is asked; one alone proves nothing."""


def beats(part: int, whole: int, baseline: float, chance: float) -> bool:
    """Whether a baseline would give so many of so few less often than `chance`."""
    return part >= FEWEST and binomial_tail(part, max(part, whole), baseline) < chance


def binomial_tail(count: int, whole: int, share: float) -> float:
    """P(X >= count) for `whole` independent trials that each succeed with `share`."""
    if count <= 0 or share >= 1:
        return 1.0
    if count > whole or share <= 0:
        return 0.0
    if count <= share * whole:
        return 1.0
    term = math.exp(_log_binomial(count, whole, share))
    total = term
    for place in range(count, whole):
        term *= (whole - place) / (place + 1) * share / (1 - share)
        total += term
        if term < total * _ENOUGH:
            break
    return min(1.0, total)


def poisson_tail(count: int, expected: float) -> float:
    """P(X >= count) where `expected` are met on average."""
    if count <= 0:
        return 1.0
    if expected <= 0:
        return 0.0
    if count <= expected:
        return 1.0
    term = math.exp(count * math.log(expected) - expected - math.lgamma(count + 1))
    total = term
    place = count
    while term > total * _ENOUGH:
        place += 1
        term *= expected / place
        total += term
    return min(1.0, total)


def _log_binomial(count: int, whole: int, share: float) -> float:
    ways = math.lgamma(whole + 1) - math.lgamma(count + 1) - math.lgamma(whole - count + 1)
    return ways + count * math.log(share) + (whole - count) * math.log1p(-share)
