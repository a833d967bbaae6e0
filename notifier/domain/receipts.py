"""What a receipt means for its delivery: a function of facts, not of their order (P12).

Receipts rank accepted < delivered < hard failure, and a delivery stands at the highest that
was seen while it was open. What changes nothing is still a fact, and goes onto the trail.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import CLOSED, DeliveryState

_S = DeliveryState
_R = Reason


class ReceiptStatus(StrEnum):
    """What a provider says of a message, normalised."""

    ACCEPTED = "accepted"
    """It holds the message or has handed it on: no final word yet."""
    DELIVERED = "delivered"
    FAILED = "failed"
    """A hard failure: the message will not arrive."""
    DELAYED = "delayed"
    """A soft failure: it goes on trying. A fact, not a state."""
    INFORMATION = "information"
    """Known, and says nothing about delivery (opened, complained, unsubscribed)."""
    UNMAPPED = "unmapped"
    """A word that is not in the adapter's table: stored, counted, shown."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is true of the delivery when a receipt is applied.

    `closed`: past expiry by the database clock. `is_latest`: the receipt is about the newest
    attempt of the delivery.
    """

    state: DeliveryState
    closed: bool
    is_latest: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The move to write (None: only the fact), with its reason and the provider's word."""

    to_state: DeliveryState | None
    reason: Reason
    detail: Detail | None = None


_TARGET: Final = {
    ReceiptStatus.ACCEPTED: _S.ACCEPTED,
    ReceiptStatus.DELIVERED: _S.DELIVERED,
    ReceiptStatus.FAILED: _S.FAILED,
}
_RANK: Final = {_S.ATTEMPTED: 0, _S.UNKNOWN: 0, _S.ACCEPTED: 1, _S.DELIVERED: 2}
_TARGET_RANK: Final = {_S.ACCEPTED: 1, _S.DELIVERED: 2, _S.FAILED: 3}
_WAITING: Final = frozenset({_S.QUEUED, _S.CLAIMED, _S.STANDBY})


def judge(
    known: Known, status: ReceiptStatus, detail: Detail | None, *, asked: bool = False
) -> Verdict:
    """Decide what a receipt changes; total over every state and status.

    `asked`: we looked it up, so that it is called reconciled where it ends an unknown.
    """
    target = _TARGET.get(status)
    if target is None:
        unmapped = status is ReceiptStatus.UNMAPPED
        return Verdict(None, _R.UNMAPPED if unmapped else _R.FACT_RECEIPT, detail)
    if known.closed or known.state in CLOSED:
        return Verdict(None, _late(known.state, target), detail)
    reason = _reason_to_move(known, target, asked=asked)
    if reason is None:
        return Verdict(None, _R.FACT_RECEIPT, detail)
    return Verdict(target, reason, detail if target is _S.FAILED else None)


def _reason_to_move(known: Known, target: DeliveryState, *, asked: bool) -> Reason | None:
    """Why an open delivery goes to `target`; None where it already stands as high or higher.

    A failure of an earlier attempt says nothing about the newest one.
    """
    if target is _S.FAILED and not known.is_latest:
        return None
    if known.state in _WAITING:
        return _R.EARLIER_ATTEMPT_FOUND
    if _TARGET_RANK[target] <= _RANK[known.state]:
        return None
    if known.state is _S.DELIVERED:
        return _R.BOUNCED_AFTER_DELIVERY
    return _R.RECONCILED if asked and known.state is _S.UNKNOWN else _R.RECEIPT


def _late(state: DeliveryState, target: DeliveryState) -> Reason:
    """After the end: against what the delivery ended as, or only too late to matter."""
    arrived = target in (_S.ACCEPTED, _S.DELIVERED)
    against = (state is _S.FAILED and arrived) or (state is _S.DELIVERED and target is _S.FAILED)
    return _R.CONTRADICTING_RECEIPT if against else _R.LATE_RECEIPT
