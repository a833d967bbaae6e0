"""The states of a delivery and of a notice, and every move that is permitted.

`MOVES` is the one table of the product's state machine. The database holds the same
triples in `permitted_move` and refuses any other; the reference page is generated from
it; `tests/db/test_moves_agree.py` compares the three.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from notifier.domain.reasons import Reason


class Channel(StrEnum):
    """A way to reach the person. Lock order everywhere: email before sms."""

    EMAIL = "email"
    SMS = "sms"


class DeliveryState(StrEnum):
    """Where a notice's job on one channel stands."""

    STANDBY = "standby"
    QUEUED = "queued"
    CLAIMED = "claimed"
    ATTEMPTED = "attempted"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"
    DELIVERED = "delivered"
    FAILED = "failed"
    SUPPRESSED = "suppressed"
    EXPIRED = "expired"
    CANCELED = "canceled"


class NoticeState(StrEnum):
    """What a notice as a whole has come to; a function of its deliveries, see `notice_state`."""

    EMAIL_PENDING = "email_pending"
    TEXT_PENDING = "text_pending"
    COMPLETE = "complete"
    CANCELED = "canceled"
    EXPIRED = "expired"
    FAILED = "failed"
    SUPPRESSED = "suppressed"


CLOSED: Final = frozenset(
    {
        DeliveryState.FAILED,
        DeliveryState.SUPPRESSED,
        DeliveryState.EXPIRED,
        DeliveryState.CANCELED,
    }
)
"""States in which no start is possible and no receipt moves the delivery any more."""

Move = tuple[DeliveryState | None, DeliveryState]

_S = DeliveryState
_R = Reason

_EVIDENCE = frozenset({_R.RECEIPT, _R.RECONCILED, _R.LATE_ANSWER})

_NOT_SENT = frozenset(
    {
        _R.NO_DESTINATION,
        _R.INVALID_DESTINATION,
        _R.NO_CONSENT,
        _R.REGION_NOT_PERMITTED,
        _R.EXCLUDED_BY_POLICY,
        _R.LIFE_TOO_SHORT_FOR_FALLBACK,
        _R.ACCOUNT_CAP_REACHED,
    }
)
_FALLBACK = frozenset(
    {
        _R.FALLBACK_EMAIL_FAILED,
        _R.FALLBACK_EMAIL_SUPPRESSED,
        _R.FALLBACK_EMAIL_EXPIRED,
        _R.FALLBACK_EMAIL_NOT_SENT,
        _R.FALLBACK_EMAIL_UNKNOWN,
        _R.FALLBACK_EMAIL_UNCONFIRMED,
    }
)
_CANCEL = frozenset({_R.RESET_USED, _R.RESET_SUPERSEDED, _R.RESET_REVOKED, _R.OPERATOR_STOP})
_BACK_TO_STANDBY = frozenset({_R.FALLBACK_GOES_FIRST, _R.PRIMARY_DELIVERED})
_OUT_OF_TIME = frozenset({_R.TOO_CLOSE_TO_EXPIRY, _R.WINDOW_CLOSED})
_EARLIER = frozenset({_R.EARLIER_ATTEMPT_FOUND})
_AMBIGUOUS = frozenset(
    {
        _R.TIMEOUT,
        _R.CONNECTION_LOST,
        _R.GATEWAY_ERROR,
        _R.UNREADABLE_ANSWER,
        _R.WORKER_LOST,
    }
)

MOVES: Final[dict[Move, frozenset[Reason]]] = {
    (None, _S.QUEUED): frozenset({_R.PRIMARY_SELECTED, _R.FALLBACK_EMAIL_SUPPRESSED}),
    (None, _S.STANDBY): frozenset({_R.FALLBACK_RESERVED}),
    (None, _S.SUPPRESSED): _NOT_SENT,
    (None, _S.EXPIRED): frozenset({_R.EXPIRED_ON_ARRIVAL}),
    (None, _S.CANCELED): frozenset({_R.RESET_SUPERSEDED}),
    (_S.STANDBY, _S.QUEUED): _FALLBACK | {_R.TEXT_ENDED_IN_TIME},
    (_S.STANDBY, _S.SUPPRESSED): frozenset(
        {
            _R.PRIMARY_DELIVERED,
            _R.PRIMARY_ACCEPTED_FINAL,
            _R.FALLBACK_HELD_BY_POLICY,
            _R.SUPERSEDED_BY_FALLBACK,
        }
    ),
    (_S.STANDBY, _S.EXPIRED): _OUT_OF_TIME,
    (_S.STANDBY, _S.CANCELED): _CANCEL,
    (_S.STANDBY, _S.ACCEPTED): _EARLIER,
    (_S.STANDBY, _S.DELIVERED): _EARLIER,
    (_S.STANDBY, _S.FAILED): _EARLIER,
    (_S.QUEUED, _S.CLAIMED): frozenset({_R.CLAIMED}),
    (_S.QUEUED, _S.STANDBY): _BACK_TO_STANDBY,
    (_S.QUEUED, _S.SUPPRESSED): frozenset({_R.PRIMARY_ACCEPTED_FINAL}),
    (_S.QUEUED, _S.EXPIRED): _OUT_OF_TIME,
    (_S.QUEUED, _S.CANCELED): _CANCEL,
    (_S.QUEUED, _S.ACCEPTED): _EARLIER,
    (_S.QUEUED, _S.DELIVERED): _EARLIER,
    (_S.QUEUED, _S.FAILED): _EARLIER,
    (_S.CLAIMED, _S.QUEUED): frozenset(
        {
            _R.LEASE_EXPIRED,
            _R.LINK_UNAVAILABLE,
            _R.HALTED,
            _R.PROVIDER_PAUSED,
            _R.SHUTDOWN,
        }
    ),
    (_S.CLAIMED, _S.ATTEMPTED): frozenset({_R.ATTEMPT_STARTED}),
    (_S.CLAIMED, _S.STANDBY): _BACK_TO_STANDBY,
    (_S.CLAIMED, _S.SUPPRESSED): frozenset(
        {
            _R.NO_DESTINATION,
            _R.INVALID_DESTINATION,
            _R.NOT_PERMITTED,
            _R.REGION_NOT_PERMITTED,
            _R.PRIMARY_ACCEPTED_FINAL,
        }
    ),
    (_S.CLAIMED, _S.FAILED): frozenset({_R.RENDER_FAILED, _R.INTERNAL_FAULT}) | _EARLIER,
    (_S.CLAIMED, _S.EXPIRED): _OUT_OF_TIME,
    (_S.CLAIMED, _S.CANCELED): _CANCEL,
    (_S.CLAIMED, _S.ACCEPTED): _EARLIER,
    (_S.CLAIMED, _S.DELIVERED): _EARLIER,
    (_S.ATTEMPTED, _S.ACCEPTED): frozenset({_R.PROVIDER_ACCEPTED}) | _EVIDENCE,
    (_S.ATTEMPTED, _S.DELIVERED): frozenset({_R.PROVIDER_ACCEPTED}) | _EVIDENCE,
    (_S.ATTEMPTED, _S.QUEUED): frozenset({_R.NOT_ACCEPTED}),
    (_S.ATTEMPTED, _S.FAILED): frozenset({_R.REFUSED, _R.NOT_ACCEPTED_NO_TIME_LEFT}) | _EVIDENCE,
    (_S.ATTEMPTED, _S.UNKNOWN): _AMBIGUOUS,
    (_S.ATTEMPTED, _S.CANCELED): frozenset({_R.CANCELED_BEFORE_RETRY}),
    (_S.UNKNOWN, _S.ACCEPTED): _EVIDENCE,
    (_S.UNKNOWN, _S.DELIVERED): _EVIDENCE,
    (_S.UNKNOWN, _S.FAILED): _EVIDENCE | {_R.ABSENT_NO_TIME_LEFT, _R.NOT_ACCEPTED_NO_TIME_LEFT},
    (_S.UNKNOWN, _S.ATTEMPTED): frozenset({_R.REPLAY_STARTED}),
    (_S.UNKNOWN, _S.QUEUED): frozenset({_R.RECONCILED_ABSENT, _R.NOT_ACCEPTED}),
    (_S.UNKNOWN, _S.EXPIRED): frozenset({_R.UNKNOWN_AT_EXPIRY}),
    (_S.UNKNOWN, _S.CANCELED): frozenset({_R.CANCELED_BEFORE_RETRY}),
    (_S.ACCEPTED, _S.DELIVERED): _EVIDENCE,
    (_S.ACCEPTED, _S.FAILED): _EVIDENCE,
    (_S.ACCEPTED, _S.EXPIRED): frozenset({_R.UNCONFIRMED_AT_EXPIRY}),
    (_S.DELIVERED, _S.FAILED): frozenset({_R.BOUNCED_AFTER_DELIVERY}),
}
"""Every permitted move with the reasons that may stand beside it (design, section 3.1)."""


def is_permitted(start: DeliveryState | None, end: DeliveryState, reason: Reason) -> bool:
    """Whether a delivery may go from `start` (None: being created) to `end` for `reason`."""
    return reason in MOVES.get((start, end), frozenset())
