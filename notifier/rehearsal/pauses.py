"""Paused providers in memory: who may call, and whose turn it is to try one after its pause.

A rehearsal has one delivery a channel, so a channel stands for its provider.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from notifier.domain.call_limits import turn_limit
from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused
from notifier.domain.policy import Policy
from notifier.domain.states import Channel


@dataclass(slots=True)
class Pauses:
    """Until when each paused channel is left alone. A turn is told by the end it was given."""

    ends: dict[Channel, datetime] = field(default_factory=dict)

    def is_over(self, channel: Channel, now: datetime) -> bool:
        """Whether the channel may be claimed, be it to try it."""
        return channel not in self.ends or self.ends[channel] <= now

    def is_shut(self, channel: Channel, turn: datetime | None) -> bool:
        """Whether whoever has `turn` may not start."""
        return self.ends.get(channel) != turn

    def take_turn(self, channel: Channel, policy: Policy, now: datetime) -> datetime | None:
        """Whoever claims after a pause tries the provider; None where none is paused."""
        if channel in self.ends:
            self.ends[channel] = now + turn_limit(policy, channel)
        return self.ends.get(channel)

    def give_back(self, channel: Channel, turn: datetime | None, now: datetime) -> bool:
        """Let it be tried again at once; False where the turn has ended."""
        if turn is None or self.is_shut(channel, turn):
            return False
        self.ends[channel] = min(turn, now)
        return True

    def hear(
        self,
        channel: Channel,
        turn: datetime | None,
        outcome: Outcome,
        policy: Policy,
        now: datetime,
    ) -> None:
        """What an answer says of us pauses its provider; a try that is taken up ends the pause."""
        ours = turn is not None and not self.is_shut(channel, turn)
        if isinstance(outcome, NotAccepted) and outcome.pause:
            asked_s = outcome.pause.seconds
            wait_s = policy.provider_pause_s if asked_s is None else asked_s
            until = now + timedelta(seconds=wait_s)
            standing = until if ours else self.ends.get(channel, until)
            self.ends[channel] = max(until, standing)
        elif ours and isinstance(outcome, Accepted | Refused):
            del self.ends[channel]
