"""Whether the call of an unknown attempt may be made again under its own key.

Pure. Reconciliation asks it to authorise a replay; the start asks everything again in its own
statement (`store/ledger/replay`), because between the two anything may have happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from notifier.domain.states import DeliveryState


@dataclass(frozen=True, slots=True)
class ReplayView:
    """What is true of a delivery when a replay is asked for.

    `is_open`: the attempt is the delivery's newest, and unresolved. `authorised` and `started`:
    it was permitted, or began, before. `fallback_taken`: the text was queued in this email's
    place, whatever became of it.
    """

    state: DeliveryState
    is_open: bool
    authorised: bool
    started: bool
    canceled: bool
    fallback_taken: bool
    now: datetime
    stop_at: datetime


def may_replay(view: ReplayView) -> bool:
    """Whether a replay may be authorised now: once an attempt, and only where it can still help."""
    return (
        view.state is DeliveryState.UNKNOWN
        and view.is_open
        and not view.authorised
        and not view.started
        and not view.canceled
        and not view.fallback_taken
        and view.now < view.stop_at
    )
