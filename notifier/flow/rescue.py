"""Takes back work whose lease ran out, because its worker died, froze or lost its way.

A claim goes back to the queue: nothing external was done. An attempt becomes *unknown*: its
call may have begun, and nobody is left who could say how it ended.
"""

from __future__ import annotations

from notifier.domain.call_limits import RESCUE_GRACE
from notifier.domain.outcome import OutcomeKind
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState
from notifier.flow.batches import each_notice
from notifier.flow.desk import Desk
from notifier.store.database import PooledConnection
from notifier.store.ledger.book import Book, Origin
from notifier.store.reads import due


def rescue(desk: Desk, connection: PooledConnection) -> int:
    """Take back one batch of lapsed leases; returns how many notices were looked at."""
    return each_notice(desk, connection, due.lapsed(connection), _take_all_back)


def _take_all_back(book: Book) -> None:
    for channel in list(book.deliveries):
        _take_back(book, channel)


def _take_back(book: Book, channel: Channel) -> None:
    delivery = book.deliveries[channel]
    if delivery.lease_until is None or delivery.lease_until + RESCUE_GRACE > book.now:
        return
    if delivery.state is DeliveryState.CLAIMED:
        origin = Origin("service", evidence={"owner": delivery.lease_owner})
        book.move(
            channel, DeliveryState.QUEUED, Reason.LEASE_EXPIRED, origin=origin, due_at=book.now
        )
        return
    attempt = book.open_attempt(channel)
    origin = Origin(
        "service",
        attempt=attempt.number if attempt else None,
        provider=attempt.provider if attempt else None,
        provider_ref=attempt.reference if attempt else None,
        evidence={"owner": delivery.lease_owner},
    )
    if attempt:
        book.resolve(
            attempt, resolved=False, outcome=OutcomeKind.UNKNOWN, reason=Reason.WORKER_LOST
        )
    book.move(channel, DeliveryState.UNKNOWN, Reason.WORKER_LOST, origin=origin)
