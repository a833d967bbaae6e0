"""The edges of the state table, how often each was taken, and those that nothing can take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from notifier.domain.states import MOVES
from tests.machine.example import Edge

LEAST = 20
"""How often the long run takes each edge at least."""

NO_WAY: dict[str, frozenset[Edge]] = {
    "an answer tells acceptance or refusal, never delivery": frozenset(
        {
            ("attempted", "delivered", "provider_accepted"),
            ("attempted", "delivered", "late_answer"),
            ("unknown", "delivered", "late_answer"),
            ("accepted", "delivered", "late_answer"),
            ("accepted", "failed", "late_answer"),
        }
    ),
    "the holder's refusal is its own answer, and a late one proves nothing": frozenset(
        {("attempted", "failed", "late_answer")}
    ),
    "only what is unknown is reconciled; of what is accepted a poll brings receipts": frozenset(
        {
            ("attempted", "accepted", "reconciled"),
            ("attempted", "delivered", "reconciled"),
            ("attempted", "failed", "reconciled"),
            ("accepted", "delivered", "reconciled"),
            ("accepted", "failed", "reconciled"),
        }
    ),
    "a link answer names no country, so only the event's region counts": frozenset(
        {("claimed", "suppressed", "region_not_permitted")}
    ),
}


def permitted() -> set[Edge]:
    """Every edge of the product's own table."""
    return {
        (str(start or "(new)"), str(end), str(reason))
        for (start, end), reasons in MOVES.items()
        for reason in reasons
    }


def reachable() -> set[Edge]:
    """Those that the product has a way to take."""
    return permitted() - frozenset().union(*NO_WAY.values())


def seldom(taken: Mapping[Edge, int], least: int = LEAST) -> list[Edge]:
    """Reachable edges that were taken less often than `least`."""
    return sorted(edge for edge in reachable() if taken.get(edge, 0) < least)


def table(taken: Counter[Edge]) -> str:
    """How often each edge was taken, the seldom ones first."""
    edges = sorted(reachable() | set(taken), key=lambda edge: (taken[edge], edge))
    return "\n".join(f"{taken[edge]:>9}  {edge[0]} -> {edge[1]}: {edge[2]}" for edge in edges)
