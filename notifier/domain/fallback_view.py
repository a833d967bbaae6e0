"""What the rules of the fallback look at, and what they can answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from notifier.domain.event import PolicyMode
from notifier.domain.policy import SendOrHold
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState

_S = DeliveryState

UNSENT: Final = frozenset({_S.QUEUED, _S.CLAIMED})
"""Durable and allowed to start, nothing external done by this attempt yet."""

GONE_OUT: Final = frozenset({_S.ATTEMPTED, _S.UNKNOWN, _S.ACCEPTED, _S.DELIVERED})
"""A message left or may have left."""

ENDED_BADLY: Final = frozenset({_S.FAILED, _S.SUPPRESSED, _S.EXPIRED, _S.CANCELED})
"""Closed without success."""


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """One delivery as the decision sees it.

    `halted`: a halt covers it now. `ever_attempted`: an intent was committed for it, ever.
    `call_deadline`: the open attempt's own deadline, None without one.
    `acceptance_is_final`: its provider never reports more than "accepted" and the policy
    takes that as the end.
    """

    state: DeliveryState
    stop_at: datetime
    halted: bool = False
    ever_attempted: bool = False
    call_deadline: datetime | None = None
    acceptance_is_final: bool = False

    @property
    def has_arrived(self) -> bool:
        """Known to have arrived, as far as this provider can ever tell."""
        if self.state is _S.ACCEPTED:
            return self.acceptance_is_final
        return self.state is _S.DELIVERED


@dataclass(frozen=True, slots=True)
class NoticeView:
    """Everything the decision may look at, read under the notice's lock.

    `fallback_at` is None where no text was reserved. `takes_bounces`: bounces of an email
    that was only ever accepted can still reach us. `hold_noted` and `avoidable_noted`: the
    facts `fallback_held` and `fallback_was_avoidable` are on the trail already.
    `email_arrived_at` is when the email arrived (occurred, not recorded; None where a hard
    failure outranks it), `sms_queued_at` when the fallback was last queued.
    """

    now: datetime
    expires_at: datetime
    mode: PolicyMode
    email: DeliveryView
    sms: DeliveryView
    fallback_at: datetime | None = None
    on_unknown: SendOrHold = "send"
    on_unconfirmed: SendOrHold = "send"
    takes_bounces: bool = False
    canceled: bool = False
    hold_noted: bool = False
    email_arrived_at: datetime | None = None
    sms_queued_at: datetime | None = None
    avoidable_noted: bool = False

    def at(self, channel: Channel) -> DeliveryView:
        """The delivery on this channel."""
        return self.email if channel is Channel.EMAIL else self.sms


@dataclass(frozen=True, slots=True)
class Decision:
    """A move to be written for one delivery."""

    channel: Channel
    to_state: DeliveryState
    reason: Reason


@dataclass(frozen=True, slots=True)
class Note:
    """A fact to be written that moves nothing."""

    channel: Channel
    reason: Reason


Step = Decision | Note
