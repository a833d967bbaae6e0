"""How long others may take: the auth service to answer, a provider to take one call, a worker.

What is past its time is not waited for.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from notifier.domain.states import Channel

if TYPE_CHECKING:
    from notifier.domain.policy import Policy

LINK_LIMIT_S: Final = 3.0
"""How long the auth service has to answer a link request (contract, section 3)."""

RESCUE_GRACE: Final = timedelta(seconds=2)
"""A holder's own answer at its deadline is awaited this long before it is called lost."""


def call_budget(policy: Policy, channel: Channel) -> timedelta:
    """The longest that one call may take on `channel`, its final reply included."""
    final = policy.final_reply_timeout_s.email if channel is Channel.EMAIL else 0.0
    return timedelta(seconds=policy.call_timeout(channel) + final)


def turn_limit(policy: Policy, channel: Channel) -> timedelta:
    """How long one may try a paused provider: the link's limit, the line's, and the call's."""
    before = LINK_LIMIT_S + policy.call_timeout(channel)
    return timedelta(seconds=before) + call_budget(policy, channel)
