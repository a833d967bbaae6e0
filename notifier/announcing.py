"""Tells logs and metrics what was committed: once for each row of the trail, after the commit.

What has no row of its own is told here as well: calls, receipts, and links that were not given.
"""

from __future__ import annotations

from collections.abc import Iterable

from notifier.domain.outcome import Outcome
from notifier.domain.reasons import Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel, DeliveryState
from notifier.logs import log, transition_event
from notifier.metrics import Metrics
from notifier.ports.links import LinkRequest, LinkUnavailable
from notifier.store.trail import TrailEntry


class Announcer:
    """What the flows call once a transaction has committed."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, entries: Iterable[TrailEntry]) -> None:
        """One structured log event and one count for each row."""
        for entry in entries:
            transition_event(
                notification_id=str(entry.notice_id),
                reset_request_id=entry.reset_request_id,
                channel=entry.channel,
                prior_state=entry.from_state,
                next_state=entry.to_state,
                receipt_id=str(entry.receipt_id) if entry.receipt_id else None,
                remaining_s=entry.remaining_s,
                reason=entry.reason,
            )
            if entry.channel and entry.to_state:
                self._metrics.transition(
                    Channel(entry.channel), DeliveryState(entry.to_state), Reason(entry.reason)
                )

    def outcome(self, channel: Channel, provider: str, outcome: Outcome) -> None:
        """Count what became of a call."""
        self._metrics.outcome(channel, provider, outcome.kind)

    def link_fault(self, request: LinkRequest, unavailable: LinkUnavailable) -> None:
        """Log and count a link request without a usable answer, whatever it was for."""
        log.warning(
            "link_unavailable",
            event_id=request.event_id,
            reset_request_id=request.reset_request_id,
            channel=request.channel,
            phase=request.purpose,
            detail=unavailable.fault,
            http_status=unavailable.status,
        )
        self._metrics.link_fault(request.channel, request.purpose, unavailable.fault)

    def receipt(self, provider: str, status: ReceiptStatus) -> None:
        """Count what a provider told us, repeats included."""
        self._metrics.receipt(provider, status)
