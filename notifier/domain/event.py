"""The reset event as the product understands it, and what may become of admitting one.

The event is immutable intent. It carries no secret; the destinations that it may bring are
held as `Destination` and `Secret`, so that no log or error can show them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from notifier.domain.states import NoticeState
from notifier.domain.values import Destination, Secret

ID_PATTERN: Final = r"[A-Za-z0-9._:-]{1,128}"
"""Ids from outside (contract, section 1): compared byte for byte, never trimmed or folded."""

_ID = re.compile(ID_PATTERN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_id(text: str) -> bool:
    """Whether `text` may be an id from outside."""
    return _ID.fullmatch(text) is not None


class PolicyMode(StrEnum):
    """Which channels the auth service's decision allows, and in which order."""

    EMAIL_THEN_SMS = "email_then_sms"
    EMAIL_ONLY = "email_only"
    SMS_ONLY = "sms_only"
    PARALLEL = "parallel"


@dataclass(frozen=True, slots=True)
class Absent:
    """The event does not say; the link answer will."""


@dataclass(frozen=True, slots=True)
class NoneThere:
    """The event says that the person has no destination on this channel (`null`)."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """The event brought a text that no provider can take; the other channel may still help."""

    text: Secret


@dataclass(frozen=True, slots=True)
class Given:
    """The event brought a usable destination; `text` is what it wrote, before any check."""

    destination: Destination
    text: Secret


DestinationClaim = Absent | NoneThere | Invalid | Given


@dataclass(frozen=True, slots=True)
class ResetEvent:
    """One reset event after defaults; field meanings are those of the contract, section 2.

    `locale` is None when none was given or the given one is malformed; then
    `malformed_locale` holds what was written, for the content digest alone.
    """

    event_id: str
    idempotency_key: str
    reset_request_id: str
    account_id: str
    requested_at: datetime
    expires_at: datetime
    template_id: str
    template_revision: str
    ticket_id: str | None = None
    locale: str | None = None
    malformed_locale: Secret | None = None
    mode: PolicyMode = PolicyMode.EMAIL_THEN_SMS
    reason_code: str | None = None
    decision_id: str | None = None
    decision_digest: str | None = None
    email_consent: bool | None = None
    sms_consent: bool | None = None
    region: str | None = None
    email: DestinationClaim = Absent()
    sms: DestinationClaim = Absent()
    supersedes_earlier: bool = False
    correlation_id: str | None = None

    def canonical(self) -> bytes:
        """The content in one fixed form, for the keyed digest that tells a repeat from a conflict.

        Times are instants (microseconds), destinations the text as it was written: a later
        change of the checking rules must not turn a repeat into a conflict. The
        `correlation_id` is left out. The bytes hold addresses: digest them, keep them nowhere.
        """
        content = {
            "event_id": self.event_id,
            "idempotency_key": self.idempotency_key,
            "reset_request_id": self.reset_request_id,
            "account_id": self.account_id,
            "ticket_id": self.ticket_id,
            "requested_at": _microseconds(self.requested_at),
            "expires_at": _microseconds(self.expires_at),
            "template": [self.template_id, self.template_revision],
            "locale": self.malformed_locale.reveal() if self.malformed_locale else self.locale,
            "policy": [str(self.mode), self.reason_code, self.decision_id, self.decision_digest],
            "inputs": [self.email_consent, self.sms_consent, self.region],
            "destinations": [_claim_form(self.email), _claim_form(self.sms)],
            "supersedes_earlier": self.supersedes_earlier,
        }
        form = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return form.encode()


def _microseconds(moment: datetime) -> int:
    span = moment - _EPOCH
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def _claim_form(claim: DestinationClaim) -> list[str]:
    match claim:
        case Absent():
            return ["absent"]
        case NoneThere():
            return ["none"]
        case Invalid(text=text) | Given(text=text):
            return ["text", text.reveal()]


@dataclass(frozen=True, slots=True)
class Transport:
    """How an event reached us.

    `message_id` is the sender's `webhook-id` where it is a sound id, `key_id` names the secret
    that verified the signature (never the secret).
    """

    message_id: str | None
    key_id: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """The event is durable. `replayed` is true for every answer but the first.

    `status` is the notice's state now; `stop_at` the latest stop time over the channels that
    may be used, None when none may.
    """

    notification_id: str
    event_id: str
    status: NoticeState
    expires_at: datetime
    stop_at: datetime | None
    replayed: bool


@dataclass(frozen=True, slots=True)
class Conflict:
    """The event id, key or reset request is known with other content; `keys` names which."""

    keys: tuple[str, ...] = field(default=(), compare=False)


AdmissionResult = Admitted | Conflict
