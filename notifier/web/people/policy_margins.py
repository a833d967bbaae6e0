"""Measured latencies beside the values that they decide, and what is proposed instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from notifier.domain.policy import Policy
from notifier.domain.policy_drafts import flat
from notifier.domain.proposals import (
    Proposal,
    Summary,
    Waits,
    proposals,
    proposed_document,
    summary,
)
from notifier.domain.states import Channel
from notifier.store.reads.latencies import Latencies, load_latencies
from notifier.web.people.visit import services

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

WINDOW: Final = timedelta(days=7)
STEPS: Final[Mapping[str, str]] = {
    "queue": "in our queue",
    "provider": "at the provider, until it answers",
    "carrier": "on the way, until it arrives",
    "news": "until we learn of it",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one channel, measured."""

    channel: Channel
    words: str
    found: Summary


@dataclass(frozen=True, slots=True)
class Margins:
    """What was measured, and what is proposed for each value that it decides, by name.

    `proposed` names the values that the proposals set; `document` is the policy with them.
    """

    latencies: Latencies
    steps: tuple[Step, ...]
    proposals: Mapping[str, Proposal]
    proposed: frozenset[str]
    document: Mapping[str, Any]


def load(connection: PooledConnection) -> Latencies:
    """What was measured in the last days."""
    now = services().now()
    return load_latencies(connection, now - WINDOW, now)


def beside(connection: PooledConnection, policy: Policy) -> Margins:
    """The measurements, and the proposals for this policy."""
    latencies = load(connection)
    made = proposals(policy, latencies.measured)
    put_in = flat({key: part for each in made for key, part in (each.values or {}).items()})
    return Margins(
        latencies=latencies,
        steps=tuple(_steps(latencies)),
        proposals={each.key.replace(".", "/"): each for each in made},
        proposed=frozenset(put_in),
        document=proposed_document(policy, made),
    )


def _steps(latencies: Latencies) -> list[Step]:
    return [
        Step(channel, words, summary(getattr(latencies.measured, name).get(channel, Waits())))
        for channel in Channel
        for name, words in STEPS.items()
    ]
