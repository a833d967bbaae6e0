"""When a message that a provider does not know was never sent, and what follows from that.

Pure. One empty answer proves nothing: a search may lag behind, and a call may still go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from notifier.domain.reasons import Reason
from notifier.domain.states import DeliveryState

AGREEING_LOOKS: Final = 3
"""Looks that must find nothing, one after the other, before an absence can be concluded."""


@dataclass(frozen=True, slots=True)
class AbsenceView:
    """What is true of an unknown attempt that was looked up once more, and not found.

    `is_believed`: the policy takes this provider's word for an absence. `settle_s`: how long
    after the call's end a message may still turn up (seconds). `looks`: those that found
    nothing, this one included, with no other answer between them.
    """

    is_believed: bool
    by_reference: bool
    call_ended: bool
    worker_lost: bool
    ended_at: datetime | None
    now: datetime
    settle_s: float
    looks: int


def is_conclusive(view: AbsenceView) -> bool:
    """Whether it is proven that nothing was sent."""
    return (
        view.is_believed
        and view.by_reference
        and view.call_ended
        and not view.worker_lost
        and view.ended_at is not None
        and view.now - view.ended_at >= timedelta(seconds=view.settle_s)
        and view.looks >= AGREEING_LOOKS
    )


def after_absence(
    *, canceled: bool, now: datetime, stop_at: datetime
) -> tuple[DeliveryState, Reason]:
    """Where a delivery goes that is proven not sent: to another attempt, while one may start."""
    if canceled:
        return DeliveryState.CANCELED, Reason.CANCELED_BEFORE_RETRY
    if now >= stop_at:
        return DeliveryState.FAILED, Reason.ABSENT_NO_TIME_LEFT
    return DeliveryState.QUEUED, Reason.RECONCILED_ABSENT
