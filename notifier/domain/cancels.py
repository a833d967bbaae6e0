"""What a cancel is for, what it can still stop, and which notices it comes too late for."""

from __future__ import annotations

from typing import Final

from notifier.domain.reasons import Reason
from notifier.domain.states import DeliveryState, NoticeState

CANCELS: Final = {
    "used": Reason.RESET_USED,
    "superseded": Reason.RESET_SUPERSEDED,
    "revoked": Reason.RESET_REVOKED,
    "operator": Reason.OPERATOR_STOP,
}

OVER: Final = frozenset({NoticeState.FAILED, NoticeState.SUPPRESSED, NoticeState.EXPIRED})
"""What never changes again (design, 11.12)."""

STOPPABLE: Final = frozenset({DeliveryState.STANDBY, DeliveryState.QUEUED, DeliveryState.CLAIMED})
