"""How long others may take to answer: the auth service a link request, a provider one call."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from notifier.domain.states import Channel

if TYPE_CHECKING:
    from notifier.domain.policy import Policy

LINK_LIMIT_S: Final = 3.0
"""How long the auth service has to answer a link request (contract, section 3)."""


def call_budget(policy: Policy, channel: Channel) -> timedelta:
    """The longest that one call may take on `channel`, its final reply included."""
    final = policy.final_reply_timeout_s.email if channel is Channel.EMAIL else 0.0
    return timedelta(seconds=policy.call_timeout(channel) + final)
