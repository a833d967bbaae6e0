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
from notifier.signals.judgements import RuleName
from notifier.signals.rule_words import TITLES
from notifier.store.reads.latencies import Latencies, load_latencies
from notifier.store.reads.troubles import load_troubles
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

TROUBLES: Final = frozenset(
    {
        RuleName.SWEEP_STALLED, RuleName.PROVIDER_PAUSED, RuleName.CALLBACKS_REFUSED,
        RuleName.PROVIDER_SILENT, RuleName.NO_PROGRESS, RuleName.QUEUE_AGE,
        RuleName.EXPIRY_AHEAD, RuleName.UNKNOWN_RATE,
    }
)  # fmt: skip
"""Alerts of what makes waits long or leaves their end unseen."""


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
    Both leave the proposals out where the sample holds `troubles`, the titles of alerts that
    were open while it was measured: an outage is no reason to reserve as if it went on. The
    proposals rest on each other, so trouble of one channel keeps back all.
    """

    latencies: Latencies
    steps: tuple[Step, ...]
    proposals: Mapping[str, Proposal]
    proposed: frozenset[str]
    document: Mapping[str, Any]
    troubles: tuple[str, ...]


def load(connection: PooledConnection) -> Latencies:
    """What was measured in the last days."""
    now = services().now()
    return load_latencies(connection, now - WINDOW, now)


def beside(connection: PooledConnection, policy: Policy) -> Margins:
    """The measurements, and the proposals for this policy."""
    latencies = load(connection)
    made = proposals(policy, latencies.measured)
    troubles = _troubles(connection, latencies)
    fit = () if troubles else made
    put_in = flat({key: part for each in fit for key, part in (each.values or {}).items()})
    return Margins(
        latencies=latencies,
        steps=tuple(_steps(latencies)),
        proposals={each.key.replace(".", "/"): each for each in made},
        proposed=frozenset(put_in),
        document=proposed_document(policy, fit),
        troubles=troubles,
    )


def _troubles(connection: PooledConnection, latencies: Latencies) -> tuple[str, ...]:
    """What was wrong from the oldest attempt of the sample to now, in words."""
    if not latencies.samples:
        return ()
    since = min(each.oldest_at for each in latencies.samples.values())
    found = load_troubles(connection, TROUBLES, since, latencies.until)
    return tuple(
        f"{TITLES[RuleName(each.rule)]}{f' ({each.key})' if each.key else ''}" for each in found
    )


def _steps(latencies: Latencies) -> list[Step]:
    return [
        Step(channel, words, summary(getattr(latencies.measured, name).get(channel, Waits())))
        for channel in Channel
        for name, words in STEPS.items()
    ]
