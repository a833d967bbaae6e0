"""Applies what a provider told us, whoever brought it: callback, poll or look-up.

A receipt is stored first, by itself, and only then applied: once it is in the inbox it can be
answered for. One about an attempt that we do not know (yet) stays parked, and is applied by
whatever teaches us the attempt: the call's own answer, or the sweep.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg
import uuid_utils

from notifier.domain.reasons import Detail
from notifier.domain.receipts import Known, ReceiptStatus, Verdict, judge
from notifier.domain.states import Channel, DeliveryState
from notifier.flow.batches import PATIENCE_MS
from notifier.flow.desk import Desk
from notifier.ports.asking import ProviderReceipt
from notifier.store.database import Database, PooledConnection
from notifier.store.ledger import receipts as inbox
from notifier.store.ledger.book import Book, Origin
from notifier.store.ledger.held_rows import HeldAttempt
from notifier.store.ledger.receipts import Taken

BATCH: Final = 50

TELLING: Final = frozenset({ReceiptStatus.ACCEPTED, ReceiptStatus.DELIVERED, ReceiptStatus.FAILED})
"""Statuses that prove the provider had the message."""

Count = Callable[[str, ReceiptStatus], None]


class Receipts:
    """The receipts use case; shared by threads."""

    def __init__(self, database: Database, desk: Desk, count: Count) -> None:
        self._database = database
        self._desk = desk
        self._count = count

    def take(self, receipts: Sequence[ProviderReceipt], source: str) -> None:
        """Store receipts durably, then apply those whose notice is free; the sweep does the rest.

        Returns once they are stored, or raises a store error with nothing half done.
        """
        rows = [_row(each, source) for each in receipts]
        with self._database.connection() as connection:
            kept = inbox.keep(connection, rows)
            for receipt in receipts:
                self._count(receipt.provider, receipt.status)
            for receipt_id in kept:
                self._apply_if_free(connection, receipt_id)

    def apply_parked(self, connection: PooledConnection) -> int:
        """Apply one batch of receipts whose attempt is known by now; how many.

        One that cannot be applied is left for the next run and holds up no other; then its
        error is raised, so that the sweep shows as failing.
        """
        waiting = inbox.parked(connection, BATCH)
        trouble: Exception | None = None
        for receipt_id in waiting:
            try:
                self._apply(connection, receipt_id)
            except Exception as error:
                if connection.closed:
                    raise
                trouble = trouble or error
                inbox.last_in_line(connection, receipt_id)
        if trouble is not None:
            raise trouble
        return len(waiting)

    def _apply_if_free(self, connection: PooledConnection, receipt_id: uuid.UUID) -> None:
        try:
            self._apply(connection, receipt_id)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            return  # it is stored; the sweep applies it

    def _apply(self, connection: PooledConnection, receipt_id: uuid.UUID) -> None:
        match = inbox.match(connection, receipt_id)
        if match is None:
            return
        with self._desk.open_on(connection, match.notice_id, patience_ms=PATIENCE_MS) as book:
            attempt = next(
                each
                for each in book.attempts
                if each.channel == match.channel and each.number == match.number
            )
            taken = inbox.take(connection, receipt_id)
            if taken:
                apply_in(book, connection, attempt, taken)


def apply_waiting(book: Book, connection: PooledConnection, attempt: HeldAttempt) -> None:
    """Apply the parked receipts about an attempt, in the transaction that made it known."""
    waiting = inbox.waiting_for(
        connection,
        provider=attempt.provider,
        reference=attempt.reference,
        provider_message_id=attempt.provider_message_id,
    )
    for receipt_id in waiting:
        taken = inbox.take(connection, receipt_id)
        if taken:
            apply_in(book, connection, attempt, taken)


def apply_in(book: Book, connection: PooledConnection, attempt: HeldAttempt, taken: Taken) -> None:
    """Write what a receipt changes, and that it was applied.

    One that teaches the provider's id brings in the receipts that waited for that id.
    """
    attempt = _as_it_stands(book, attempt)
    channel = Channel(attempt.channel)
    delivery = book.deliveries[channel]
    status = ReceiptStatus(taken.status)
    closed = book.now >= delivery.expires_at
    verdict = judge(
        Known(
            state=delivery.state,
            closed=closed,
            is_latest=attempt.number == delivery.attempts,
        ),
        status,
        Detail(taken.detail) if taken.detail else None,
        asked=taken.source != "callback",
    )
    # After expiry the holder's own answer may still end its attempt (design, 11.3).
    left_to_holder = closed and delivery.state is DeliveryState.ATTEMPTED
    ends = status in TELLING and not left_to_holder
    learns_id = _resolve(book, attempt, taken, ends=ends)
    _write(book, channel, verdict, _origin(attempt, taken))
    inbox.applied(
        connection,
        taken.receipt_id,
        notice_id=book.notice.notice_id,
        channel=channel,
        attempt=attempt.number,
        now=book.now,
    )
    if learns_id:
        apply_waiting(book, connection, _as_it_stands(book, attempt))


def _as_it_stands(book: Book, attempt: HeldAttempt) -> HeldAttempt:
    """The attempt after what was written about it in this very book."""
    key = (attempt.channel, attempt.number)
    return next(each for each in book.attempts if (each.channel, each.number) == key)


def _write(book: Book, channel: Channel, verdict: Verdict, origin: Origin) -> None:
    if verdict.to_state is None:
        book.note(channel, verdict.reason, origin=origin, detail=verdict.detail)
        return
    seen_at = origin.occurred_at or book.now
    columns: dict[str, Any] = {"may_have_left": True}
    if book.deliveries[channel].left_at is None:
        columns["left_at"] = seen_at
    if verdict.to_state is DeliveryState.DELIVERED:
        columns["arrived_at"] = seen_at
    if verdict.to_state is DeliveryState.FAILED:
        columns["arrived_at"] = None
    book.move(
        channel, verdict.to_state, verdict.reason, origin=origin, detail=verdict.detail, **columns
    )


def _resolve(book: Book, attempt: HeldAttempt, taken: Taken, *, ends: bool) -> bool:
    """Store what a receipt says of its attempt; whether it taught the provider's id."""
    columns: dict[str, Any] = {}
    if attempt.provider_message_id is None and taken.provider_message_id:
        columns["provider_message_id"] = taken.provider_message_id
    resolves = ends and attempt.resolved_at is None
    if resolves or columns:
        book.resolve(attempt, resolved=resolves, **columns)
    return bool(columns)


def _origin(attempt: HeldAttempt, taken: Taken) -> Origin:
    evidence = {"source": taken.source, "status": taken.status}
    if taken.provider_code:
        evidence["code"] = taken.provider_code
    return Origin(
        "provider",
        attempt=attempt.number,
        provider=taken.provider,
        provider_ref=taken.provider_message_id or attempt.reference,
        receipt_id=taken.receipt_id,
        occurred_at=taken.occurred_at,
        evidence=evidence,
    )


def _row(receipt: ProviderReceipt, source: str) -> dict[str, Any]:
    return {
        "receipt_id": uuid.UUID(bytes=uuid_utils.uuid7().bytes),
        "provider": receipt.provider,
        "account": receipt.account,
        "identity": receipt.identity,
        "reference": receipt.reference,
        "provider_message_id": receipt.provider_message_id,
        "source": source,
        "status": receipt.status,
        "detail": receipt.detail,
        "provider_code": receipt.provider_code,
        "final": receipt.status in (ReceiptStatus.DELIVERED, ReceiptStatus.FAILED),
        "occurred_at": receipt.occurred_at,
    }
