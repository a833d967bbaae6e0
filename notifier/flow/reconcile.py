"""Asks providers: what became of an accepted message, and whether an unknown one exists.

Reading is not sending: nothing here can reach a sender. Where a provider cannot be asked but
knows a key again, a replay is authorised: a mark on the row, and no more. What is found is
applied by the same function as a callback. What is not found proves nothing, unless the policy
names this provider's absence conclusive, the call itself is known to have ended, the settling
time has passed and several looks agree; a search by destination and time never proves an
absence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from notifier.domain.absence import AbsenceView, after_absence, is_conclusive
from notifier.domain.call_limits import LINK_LIMIT_S
from notifier.domain.policy import Policy
from notifier.domain.reasons import Reason
from notifier.domain.replay import ReplayView, may_replay
from notifier.domain.states import Channel, DeliveryState
from notifier.flow import put_back
from notifier.flow.contacts import Contacts
from notifier.flow.desk import Desk
from notifier.flow.policies import PolicyShelf
from notifier.flow.receipts import Receipts
from notifier.ports.asking import (
    CannotTell,
    Capability,
    Found,
    Looked,
    NotFound,
    OutcomeLookup,
    ProviderReceipt,
    Question,
)
from notifier.ports.links import LinkGone, LinkGranted, LinkRequest, LinkSource
from notifier.store.database import Database, PooledConnection
from notifier.store.ledger import looks
from notifier.store.ledger.book import Book, Origin
from notifier.store.ledger.held_rows import HeldAttempt
from notifier.store.ledger.looks import Look

log = logging.getLogger(__name__)

Ask = Callable[[Look], None]

BATCH: Final = 8
AT_ONCE: Final = 4
ASK_LIMIT_S: Final = 5.0
CLOCKS_APART: Final = timedelta(seconds=5)
"""How far a provider's clock may be from ours when messages are matched by time."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """The asking side of one process."""

    database: Database
    desk: Desk
    shelf: PolicyShelf
    receipts: Receipts
    lookups: Mapping[str, OutcomeLookup]
    links: LinkSource
    contacts: Contacts

    def poll(self, connection: PooledConnection) -> int:
        """Ask about one batch of accepted messages; how many."""
        _, policy = self.shelf.current()
        due = looks.claim(
            connection,
            state=DeliveryState.ACCEPTED,
            delays_s=[policy.poll_every_s],
            batch=BATCH,
        )
        return self._each(due, self._poll)

    def reconcile(self, connection: PooledConnection) -> int:
        """Look one batch of unknown outcomes up; how many."""
        _, policy = self.shelf.current()
        due = looks.claim(
            connection,
            state=DeliveryState.UNKNOWN,
            delays_s=policy.reconcile_after_s,
            batch=BATCH,
        )
        return self._each(due, self._reconcile)

    def _each(self, due: list[Look], ask: Ask) -> int:
        """Ask side by side, so that one slow provider does not hold up the other's answers."""
        if due:
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ask") as pool:
                list(pool.map(lambda look: self._guarded(ask, look), due))
        return len(due)

    def _guarded(self, ask: Ask, look: Look) -> None:
        try:
            ask(look)
        except Exception as error:  # noqa: BLE001 - one look that fails must not end the others
            log.warning("a look failed: %s", type(error).__name__)

    def _poll(self, look: Look) -> None:
        lookup = self.lookups.get(look.provider)
        if lookup is None or look.provider_message_id is None or not lookup.can_poll:
            return
        found = lookup.poll(look.provider_message_id, ASK_LIMIT_S)
        if isinstance(found, Found):
            self.receipts.take(found.receipts, "poll")

    def _reconcile(self, look: Look) -> None:
        lookup = self.lookups.get(look.provider)
        if lookup is None:
            return
        if lookup.can_find is Capability.REPLAY:
            self._authorise(look)
            return
        match self._look(lookup, look):
            case Found(receipts=receipts):
                ours = [replace(each, reference=look.reference) for each in receipts]
                self.receipts.take(ours, "look_up")
                self._begin_anew(look)
            case NotFound():
                self._note_absent(lookup, look)
            case CannotTell(what=what):
                log.info("a look told nothing: %s", what)
                self._begin_anew(look)

    def _look(self, lookup: OutcomeLookup, look: Look) -> Looked:
        question = Question(Channel(look.channel), look.reference, look.started_at, look.deadline)
        match lookup.can_find:
            case Capability.BY_REFERENCE:
                return lookup.find(question, ASK_LIMIT_S)
            case Capability.BY_DESTINATION:
                return self._look_by_destination(lookup, look, question)
            case Capability.REPLAY | Capability.NOTHING:
                return CannotTell("cannot_be_asked")

    # replay

    def _authorise(self, look: Look) -> None:
        """Mark the delivery, so that whoever sends may repeat the call under the same key.

        This is all that can be done from here: the sending side asks every guard of a start.
        """
        with self.desk.open(look.notice_id) as book:
            channel = Channel(look.channel)
            attempt = book.open_attempt(channel)
            if attempt is None or not may_replay(_replay_view(book, look, attempt)):
                return
            book.note(channel, Reason.REPLAY_AUTHORISED, origin=_origin(attempt))
            book.resolve(attempt, resolved=False, replay_authorised_at=book.now)
            book.amend(channel, replay_due_at=book.now)

    # by destination and time

    def _look_by_destination(self, lookup: OutcomeLookup, look: Look, question: Question) -> Looked:
        """Learn the destination again, search for it, and count a hit only if it must be ours."""
        request = LinkRequest(
            look.reset_request_id, look.event_id, Channel(look.channel), "look_up"
        )
        answer = self.links.ask(request, LINK_LIMIT_S)
        if isinstance(answer, LinkGone):
            put_back.end_reset(self.desk, look, answer.reason)
        if not isinstance(answer, LinkGranted):
            return CannotTell("destination_not_learnt")
        if not self.contacts.is_known(look, answer.destination):
            return CannotTell("destination_changed")
        found = lookup.find(replace(question, destination=answer.destination), ASK_LIMIT_S)
        return self._only_ours(look, found) if isinstance(found, Found) else found

    def _only_ours(self, look: Look, found: Found) -> Looked:
        since, until = look.started_at - CLOCKS_APART, look.deadline + CLOCKS_APART
        inside = [each for each in found.receipts if _is_between(each, since, until)]
        with self.database.connection() as connection:
            ids = [each.provider_message_id for each in inside if each.provider_message_id]
            own, taken = looks.owned(connection, look, ids)
            if own is not None:
                return _named(found, own)
            free = [each for each in inside if each.provider_message_id not in taken]
            rivals = looks.rivals(
                connection,
                look,
                fingerprints=self.contacts.kept(connection, look),
                since=since,
                until=until,
            )
        if not free:
            return NotFound()
        if rivals or len({each.provider_message_id for each in free}) > 1:
            return CannotTell("could_be_another")
        return Found(free)

    # absence

    def _note_absent(self, lookup: OutcomeLookup, look: Look) -> None:
        with self.desk.open(look.notice_id) as book:
            channel = Channel(look.channel)
            attempt, delivery = book.open_attempt(channel), book.deliveries[channel]
            is_same = attempt is not None and attempt.number == look.number
            if not is_same or attempt is None or delivery.state is not DeliveryState.UNKNOWN:
                return
            book.note(channel, Reason.LOOKED_NOT_FOUND, origin=_origin(attempt))
            book.amend(channel, absent_looks=delivery.absent_looks + 1)
            view = _absence_view(book, self.desk.policy_of(book), lookup, attempt)
            if is_conclusive(view):
                _write_absent(book, channel, attempt)

    def _begin_anew(self, look: Look) -> None:
        """Looks that find nothing agree only where no other answer stands between them."""
        with self.desk.open(look.notice_id) as book:
            channel = Channel(look.channel)
            delivery = book.deliveries[channel]
            if delivery.state is DeliveryState.UNKNOWN and delivery.absent_looks:
                book.amend(channel, absent_looks=0)


def _absence_view(
    book: Book, policy: Policy, lookup: OutcomeLookup, attempt: HeldAttempt
) -> AbsenceView:
    return AbsenceView(
        is_believed=attempt.provider in policy.absence_conclusive,
        by_reference=lookup.can_find is Capability.BY_REFERENCE,
        call_ended=attempt.call_ended,
        worker_lost=attempt.reason == Reason.WORKER_LOST,
        ended_at=attempt.finished_at,
        now=book.now,
        settle_s=policy.settle_s,
        looks=book.deliveries[Channel(attempt.channel)].absent_looks,
    )


def _replay_view(book: Book, look: Look, attempt: HeldAttempt) -> ReplayView:
    delivery = book.deliveries[Channel(look.channel)]
    is_email = delivery.channel is Channel.EMAIL
    return ReplayView(
        state=delivery.state,
        is_open=attempt.number == look.number == delivery.attempts,
        authorised=attempt.replay_authorised_at is not None,
        started=attempt.replay_started_at is not None,
        canceled=book.notice.canceled_at is not None,
        fallback_taken=is_email and book.deliveries[Channel.SMS].requeued_at is not None,
        now=book.now,
        stop_at=delivery.stop_at,
    )


def _write_absent(book: Book, channel: Channel, attempt: HeldAttempt) -> None:
    """Proven not sent: another attempt, while one may still start."""
    book.resolve(attempt, resolved=True)
    to_state, reason = after_absence(
        canceled=book.notice.canceled_at is not None,
        now=book.now,
        stop_at=book.deliveries[channel].stop_at,
    )
    due: dict[str, Any] = {"due_at": book.now} if to_state is DeliveryState.QUEUED else {}
    book.move(channel, to_state, reason, origin=_origin(attempt), may_have_left=False, **due)


def _origin(attempt: HeldAttempt) -> Origin:
    return Origin(
        "service",
        attempt=attempt.number,
        provider=attempt.provider,
        provider_ref=attempt.reference,
    )


def _named(found: Found, message_id: str) -> Looked:
    """Once the message is known by its id, no other can be it, and it can be nobody else's."""
    ours = [each for each in found.receipts if each.provider_message_id == message_id]
    return Found(ours) if ours else NotFound()


def _is_between(receipt: ProviderReceipt, since: datetime, until: datetime) -> bool:
    return receipt.occurred_at is None or since <= receipt.occurred_at <= until
