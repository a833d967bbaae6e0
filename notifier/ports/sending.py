"""The port through which a message leaves. Only `flow/dispatch` may import it (promise P4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from notifier.domain.outcome import NotAccepted, Outcome
from notifier.domain.states import Channel
from notifier.domain.values import Destination, RenderedMessage


@dataclass(frozen=True, slots=True)
class Envelope:
    """All that one external send needs.

    `reference` is the attempt reference (short random text, handed to the provider),
    `key` the attempt key `event_id:channel:attempt_class`, `budget_s` the seconds that the
    whole call may take (never past the stop time), `validity_s` the whole seconds of life
    left, for providers that drop late messages themselves.
    """

    destination: Destination
    message: RenderedMessage
    reference: str
    key: str
    budget_s: float
    validity_s: int


class Connection(Protocol):
    """An open line to the provider: everything before the first byte of the message."""

    def send(self, envelope: Envelope) -> Outcome:
        """Make the one request. Never raises for expected trouble, never retries."""
        ...

    def close(self) -> None:
        """Hang up; never raises. Called whether or not `send` was."""
        ...


class Sender(Protocol):
    """One provider's sending side."""

    name: str
    channel: Channel
    reports_deliveries: bool
    """Whether the provider ever tells more than "accepted" (False: plain SMTP)."""
    key_lifetime_s: float
    """For how many seconds the provider knows an attempt's key again; 0 where it knows none.

    Within them the same envelope may be sent again under the same key without making a second
    message (`Envelope.key`, and the same bytes for the same envelope).
    """

    def connect(self, budget_s: float) -> Connection | NotAccepted:
        """Open the line before the intent is committed, so that trouble here is *not accepted*.

        Takes at most `budget_s` seconds.
        """
        ...
