"""Ends a notice because its reset has ended, or because an operator stops it.

What has not left is canceled; what may have left keeps following its facts. The first reason
stays, however often a cancel is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from notifier.domain.cancels import CANCELS, OVER, STOPPABLE
from notifier.domain.event import Transport
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.flow.desk import Desk
from notifier.store.database import Database
from notifier.store.ledger import cancels
from notifier.store.ledger.book import Book, Origin
from notifier.store.reads.look_up import notice_of_event


@dataclass(frozen=True, slots=True)
class Canceled:
    """What a cancel came to, the same for each repeat."""

    state: NoticeState
    canceled: Sequence[Channel]
    may_have_left: Sequence[Channel]


def cancel(desk: Desk, notice_id: UUID, why: str) -> Canceled:
    """End a notice; `why` is a key of `CANCELS`. Raises `NoSuchNotice`."""
    with desk.open(notice_id) as book:
        write_cancel(book, why)
    return told(book)


class SignedForAnother(Exception):
    """The signed message, which does not name its event, has canceled another one."""


def cancel_event(
    desk: Desk, database: Database, event_id: str, why: str, transport: Transport, digest: bytes
) -> Canceled | None:
    """End an event's notice by a signed message; None where there is no such event.

    The event stands in the address, which no signature covers. So the first event that a message
    ends is the only one: `digest` is that of what was signed. Raises `SignedForAnother`.
    """
    with database.connection() as connection:
        notice_id = notice_of_event(connection, event_id)
        if notice_id is None:
            return None
        if cancels.event_of_message(connection, digest, event_id) != event_id:
            raise SignedForAnother
    evidence = {"reason": why, "signing_key": transport.key_id}
    with desk.open(notice_id) as book:
        write_cancel(book, why, Origin("service", evidence=evidence))
    return told(book)


def told(book: Book) -> Canceled:
    """The answer for whoever canceled."""
    canceled = [
        channel
        for channel, delivery in book.deliveries.items()
        if delivery.state is DeliveryState.CANCELED
    ]
    left = [channel for channel, delivery in book.deliveries.items() if delivery.may_have_left]
    return Canceled(NoticeState(book.notice.state), canceled, left)


def write_cancel(book: Book, why: str, origin: Origin | None = None) -> None:
    """Cancel what has not left; what was canceled before, or is over, is left as it is.

    `origin` says who ends it, where that is not the auth service or just an operator.
    """
    over = book.now >= book.notice.expires_at or book.notice.state in OVER
    if over or book.notice.canceled_at is not None:
        return
    actor = "operator" if why == "operator" else "service"
    origin = origin or Origin(actor, evidence={"reason": why})
    book.amend_notice(canceled_at=book.now, canceled_reason=why)
    book.note(None, Reason.CANCEL_RECORDED, origin=origin)
    for channel, delivery in list(book.deliveries.items()):
        if delivery.state in STOPPABLE:
            book.move(channel, DeliveryState.CANCELED, CANCELS[why], origin=origin)
