"""What became of one call to a provider: the four outcomes every adapter returns.

Expected trouble is a value. "Not accepted" means proven not to have been taken and
therefore safe to try again; "unknown" means that nobody can tell, and nothing may be sent
again on a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from notifier.domain.reasons import Detail, Reason

UnknownReason = Literal[
    Reason.TIMEOUT,
    Reason.CONNECTION_LOST,
    Reason.GATEWAY_ERROR,
    Reason.UNREADABLE_ANSWER,
    Reason.WORKER_LOST,
]


class OutcomeKind(StrEnum):
    """The word that is stored with the attempt."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_ACCEPTED = "not_accepted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider holds the message.

    `provider_message_id` is the provider's own id, None where it gives none.
    """

    provider_message_id: str | None = None
    provider_code: str | None = None
    kind: Literal[OutcomeKind.ACCEPTED] = OutcomeKind.ACCEPTED


@dataclass(frozen=True, slots=True)
class Refused:
    """A final refusal about this message or this recipient."""

    detail: Detail
    provider_code: str | None = None
    kind: Literal[OutcomeKind.REFUSED] = OutcomeKind.REFUSED


@dataclass(frozen=True, slots=True)
class ProviderPause:
    """Trouble that is about us, not about the message: stop using the provider for all.

    `seconds` is how long the provider asked us to wait; None means until an operator acts
    or the default pause of the policy has passed.
    """

    detail: Detail
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class NotAccepted:
    """Proven not taken: before the request, or a refusal in the provider's words about us."""

    detail: Detail
    provider_code: str | None = None
    pause: ProviderPause | None = None
    kind: Literal[OutcomeKind.NOT_ACCEPTED] = OutcomeKind.NOT_ACCEPTED


def about_us(detail: Detail, code: str) -> NotAccepted:
    """Not taken, for a cause that the next message would meet as well: stop for all."""
    return NotAccepted(detail, code, ProviderPause(detail))


@dataclass(frozen=True, slots=True)
class Unknown:
    """The request may have been taken; to be reconciled, never resent on a guess."""

    reason: UnknownReason
    provider_code: str | None = None
    kind: Literal[OutcomeKind.UNKNOWN] = OutcomeKind.UNKNOWN


Outcome = Accepted | Refused | NotAccepted | Unknown
