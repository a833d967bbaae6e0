"""What an operator may do to one notice: have a provider asked now, note evidence, stop it.

Each act is decided on the state that the operator saw and refused where that has moved, leaves
one step on the trail under the operator's name, and cannot send: nothing here leads to a sender,
and asking is left to the reconciler's own claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from notifier.domain.reasons import Reason
from notifier.domain.remarks import Evidence, check_remark
from notifier.domain.states import Channel, DeliveryState
from notifier.flow.cancel import write_cancel
from notifier.flow.desk import Desk
from notifier.store.database import Database
from notifier.store.ledger import operators
from notifier.store.ledger.book import Book, Origin
from notifier.store.ledger.held_rows import HeldDelivery

ASKABLE: Final = frozenset({DeliveryState.UNKNOWN, DeliveryState.ACCEPTED})


class NoticeMoved(Exception):
    """The notice has moved on since the operator looked at it; nothing was done."""


class NothingToDo(Exception):
    """The act has no object any more, or never had one; the text says so."""


@dataclass(frozen=True, slots=True)
class OperatorActs:
    """The acts; each raises `NoSuchNotice`, `RemarkUnfit`, `NoticeMoved` and `NothingToDo`.

    `version` is the sequence of the newest step that the operator saw.
    """

    database: Database
    desk: Desk

    def look_now(self, notice_id: UUID, *, version: int, reason: str, by: str) -> None:
        """Let the next look at the provider be due at once."""
        evidence = {"reason": check_remark(reason, "reason")}
        with self._seen(notice_id, version) as book:
            asked = [each for each in book.deliveries.values() if may_be_asked(each)]
            if not asked:
                message = "No provider can be asked about this notice now."
                raise NothingToDo(message)
            for each in asked:
                book.amend(each.channel, next_check_at=book.now)
            channel = asked[0].channel if len(asked) == 1 else None
            book.note(channel, Reason.LOOK_REQUESTED, origin=_origin(by, evidence))

    def annotate(
        self,
        notice_id: UUID,
        *,
        version: int,
        channel: Channel,
        evidence: Evidence,
        text: str,
        by: str,
    ) -> None:
        """Put evidence beside an outcome that nobody can prove; it changes no state."""
        found = {"evidence": str(evidence), "note": check_remark(text, "note")}
        with self._seen(notice_id, version) as book:
            if not is_unproven(book.deliveries[channel].state, book.deliveries[channel].reason):
                message = "The outcome on this channel is not unknown."
                raise NothingToDo(message)
            book.note(channel, Reason.ANNOTATED, origin=_origin(by, found))

    def stop(self, notice_id: UUID, *, version: int, reason: str, by: str) -> None:
        """Cancel what has not left; what may have left keeps following its facts."""
        evidence = {"reason": check_remark(reason, "reason")}
        with self._seen(notice_id, version) as book:
            if book.notice.canceled_at is not None or book.now >= book.notice.expires_at:
                message = "There is nothing left to stop: the notice was canceled or has expired."
                raise NothingToDo(message)
            write_cancel(book, "operator", _origin(by, evidence))

    @contextmanager
    def _seen(self, notice_id: UUID, version: int) -> Iterator[Book]:
        """The book of the notice as the operator saw it."""
        with (
            self.database.connection() as connection,
            self.desk.open_on(connection, notice_id) as book,
        ):
            if operators.version(connection, notice_id) != version:
                raise NoticeMoved
            yield book


def may_be_asked(delivery: HeldDelivery) -> bool:
    """Whether a look at a provider is planned, so that it can be brought forward."""
    return delivery.state in ASKABLE and delivery.next_check_at is not None


def is_unproven(state: str, reason: str) -> bool:
    """Whether nobody can say what became of the message: now, or when it expired."""
    at_expiry = state == DeliveryState.EXPIRED and reason == Reason.UNKNOWN_AT_EXPIRY
    return state == DeliveryState.UNKNOWN or at_expiry


def _origin(by: str, evidence: dict[str, str]) -> Origin:
    return Origin(f"operator:{by}", evidence=evidence)
