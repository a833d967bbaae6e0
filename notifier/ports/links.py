"""The port that asks the auth service for a link and a destination at send time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from notifier.domain.link_faults import LinkFault
from notifier.domain.states import Channel
from notifier.domain.values import Destination, ResetLink


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """Whom to ask for. `purpose` is `send`, or `look_up` for the destination alone."""

    reset_request_id: str
    event_id: str
    channel: Channel
    purpose: Literal["send", "look_up"] = "send"


@dataclass(frozen=True, slots=True)
class LinkGranted:
    """A live link. `expires_at` may only shorten the life. `link` is None for a look-up.

    `name` is the person's own and is not shown either.
    """

    destination: Destination
    link: ResetLink | None
    expires_at: datetime | None = None
    name: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class LinkWithheld:
    """There is nobody to send to on this channel: it is suppressed with this reason.

    `invalid_destination` is ours: the answer carried an address that no provider can take.
    """

    reason: Literal["no_destination", "not_permitted", "invalid_destination"]


@dataclass(frozen=True, slots=True)
class LinkGone:
    """The reset itself has ended (HTTP 410)."""

    reason: Literal["used", "superseded", "revoked", "expired"]


@dataclass(frozen=True, slots=True)
class LinkUnavailable:
    """No usable answer; ask again later. `status` is the answer's, None where none was read."""

    fault: LinkFault
    status: int | None = None


LinkAnswer = LinkGranted | LinkWithheld | LinkGone | LinkUnavailable


class LinkSource(Protocol):
    """The auth service, as the flows see it."""

    def ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        """One request, no retry, at most `budget_s` seconds; never raises for expected trouble."""
        ...
