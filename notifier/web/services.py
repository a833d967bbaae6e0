"""What the machine-facing pages ask of the rest of the product.

`notifier.assembly` fills these in; a test fills in plain functions. Every callable that reads
or writes the store may raise one of `problems.STORE_TROUBLE`, which becomes a 503.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol, TypedDict

from notifier.domain.event import AdmissionResult, ResetEvent, Transport
from notifier.domain.event_document import EventRules
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.flow.cancel import Canceled
from notifier.metrics import Metrics


class Scope(StrEnum):
    """What a bearer token may be for."""

    STATUS = "status"
    TICKETS = "tickets"
    METRICS = "metrics"


class ApiToken(Protocol):
    """A bearer token as the settings hold it: its SHA-256, never itself."""

    @property
    def name(self) -> str:
        """Who uses it; for the trail."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """Values of `Scope`."""
        ...

    @property
    def sha256(self) -> bytes:
        """Digest of the token's UTF-8 bytes."""
        ...


def find_token(tokens: Sequence[ApiToken], presented: str) -> ApiToken | None:
    """The token whose digest is that of `presented`; takes the same time wherever it stands."""
    digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).digest()
    found = None
    for token in tokens:
        if hmac.compare_digest(token.sha256, digest):
            found = token
    return found


class CancelReason(StrEnum):
    """Why the auth service ends a reset request."""

    USED = "used"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"


class TemplateName(TypedDict):
    """A template by id and revision."""

    id: str
    revision: str


class Basis(TypedDict):
    """What decided the channel."""

    mode: str
    decision_id: str | None
    digest: str | None
    inputs: Mapping[str, object]
    reasons: Sequence[str]


AttemptView = TypedDict(
    "AttemptView",
    {
        "number": int,
        "class": str,
        "reference": str,
        "provider": str,
        "started_at": datetime,
        "finished_at": datetime | None,
        "outcome": Literal["accepted", "refused", "not_accepted", "unknown"] | None,
        "reason": str | None,
    },
)
"""One external send. `outcome` is None while the call may still run."""


class DeliveryView(TypedDict):
    """One channel's job."""

    channel: Channel
    state: DeliveryState
    reason: str
    next_permitted: str
    provider: str | None
    provider_message_id: str | None
    destination_mask: str | None
    attempts: Sequence[AttemptView]


class NoticeStatus(TypedDict):
    """The status answer of the contract, section 2."""

    notification_id: str
    event_id: str
    reset_request_id: str
    state: NoticeState
    support_word: str
    headline: str
    customer_action: str
    expires_at: datetime
    stop_at: datetime | None
    remaining_s: float
    on_hold: bool
    policy_revision: int
    template: TemplateName
    basis: Basis
    deliveries: Sequence[DeliveryView]


@dataclass(frozen=True, slots=True)
class TransitionPage:
    """Some rows of a trail in order; `next` is the sequence to ask after, None at the end."""

    transitions: Sequence[Mapping[str, object]]
    next: int | None


class LinkedNotice(TypedDict):
    """A notice as a ticket's list shows it."""

    notification_id: str
    event_id: str
    state: NoticeState
    support_word: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PartReport:
    """One part of readiness. `detail` names what is wrong in our own words, or an age."""

    part: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class MachineServices:
    """Everything that the machine-facing blueprints call.

    `asked_from_here_alone` where the port is bound to loopback and no proxy passes others on.
    `find_admitted` answers for an event that today's rules refuse: the repeat of one admitted
    under other rules gets its old answer. `admission_wait_s` counts this admission against the
    rate and gives the seconds to wait, None when it may pass.
    """

    public_url: str
    asked_from_here_alone: bool
    metrics: Metrics
    now: Callable[[], datetime]
    ingest_secrets: Sequence[bytes]
    api_tokens: Sequence[ApiToken]
    event_rules: Callable[[], EventRules]
    admit: Callable[[ResetEvent, Transport], AdmissionResult]
    find_admitted: Callable[[ResetEvent], AdmissionResult | None]
    admission_wait_s: Callable[[], float | None]
    notice_status: Callable[[str], NoticeStatus | None]
    transitions: Callable[[str, int, int], TransitionPage | None]
    cancel: Callable[[str, CancelReason, Transport, bytes], Canceled | None]
    """`(event_id, why, transport, digest of what was signed)`; None when there is no such event.

    Raises `SignedForAnother`.
    """
    link_ticket: Callable[[str, str, str], bool]
    """`(ticket_id, notification_id, token name)`; False when there is no such notice."""
    ticket_notices: Callable[[str], Sequence[LinkedNotice]]
    readiness: Callable[[], Sequence[PartReport]]
    readiness_limit_s: float = 2.0
