"""The port through which outcomes are learnt: callbacks, polls, look-ups.

Nothing here can create a message. `flow/receipts` and `flow/reconcile` know this port and
never the sending one (promise P4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Destination


@dataclass(frozen=True, slots=True)
class ProviderReceipt:
    """One thing that a provider told us, in our vocabulary and with nothing else of its words.

    `identity` is a digest of what makes it the same thing when told again (the signed event
    id, else the signed content), `account` the provider account it is about. `reference` is
    our attempt reference where the provider echoed it. `provider_code` is the provider's own
    short code, never free text. `occurred_at` is None where the provider gives no time.
    """

    provider: str
    account: str
    identity: bytes
    status: ReceiptStatus
    detail: Detail | None = None
    provider_code: str | None = None
    reference: str | None = None
    provider_message_id: str | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Callback:
    """A callback as it came in. `url` is our public URL of it, made from the settings."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class CallbackRefused(Exception):
    """The callback is not genuine. Decided before anything else is looked at."""


class CallbackUnreadable(Exception):
    """The callback is genuine, and says nothing that can be read: nobody learns what it told."""


class ReceiptParser(Protocol):
    """Reads one provider's callbacks."""

    name: str

    def parse(self, callback: Callback) -> Sequence[ProviderReceipt]:
        """Verify over the raw bytes, then normalise.

        Raises `CallbackRefused`, or `CallbackUnreadable` where it cannot be read. A genuine
        callback that is about nothing of ours gives no receipts.
        """
        ...


class Capability(StrEnum):
    """How an unknown outcome can be looked up at a provider.

    `REPLAY`: it cannot be, but the same call under the same key makes no second message. Who
    asks may only permit that; the sending side carries it out.
    """

    REPLAY = "replay"
    BY_REFERENCE = "by_reference"
    BY_DESTINATION = "by_destination"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Question:
    """Which attempt is asked about. `destination` is given for `BY_DESTINATION` alone."""

    channel: Channel
    reference: str
    started_at: datetime
    deadline: datetime
    destination: Destination | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Messages that can be this attempt's; more than one only by destination and time."""

    receipts: Sequence[ProviderReceipt]


@dataclass(frozen=True, slots=True)
class NotFound:
    """The provider holds nothing that could be it; proves nothing by itself."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """No usable answer; `what` is a short code of ours."""

    what: str


Looked = Found | NotFound | CannotTell


class OutcomeLookup(Protocol):
    """One provider's asking side. Its HTTP client refuses everything but GET."""

    name: str
    channel: Channel
    can_find: Capability
    can_poll: bool

    def find(self, question: Question, budget_s: float) -> Looked:
        """Look for an attempt whose outcome is unknown; never raises for expected trouble."""
        ...

    def poll(self, provider_message_id: str, budget_s: float) -> Looked:
        """Ask what became of a message the provider took; never raises for expected trouble."""
        ...
