"""Opens a notice's book, lets a use case write into it, and draws what follows.

Whatever was written, the rules of `domain/fallback` are asked again before the commit and the
notice's state is computed from its deliveries: the fallback is level-triggered, and no use
case can forget it. After the commit, and only then, each trail row is announced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from notifier.domain.event import PolicyMode
from notifier.domain.fallback import at_intent, next_fallback_at, settle
from notifier.domain.fallback_view import Decision, DeliveryView, NoticeView, Step
from notifier.domain.notice_state import DeliveryFacts, notice_state
from notifier.domain.policy import Policy
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.flow.policies import PolicyShelf
from notifier.store.database import Database, PooledConnection
from notifier.store.ledger.book import Book, Origin, held
from notifier.store.ledger.held_rows import HeldDelivery
from notifier.store.trail import Announce, TrailEntry

RULES = Origin("service")


@dataclass(frozen=True, slots=True)
class Asks:
    """What can be asked of a provider: an unknown outcome, or news of an accepted message."""

    can_find: bool
    can_poll: bool


NOT_ASKED = Asks(can_find=False, can_poll=False)


class Desk:
    """Where notices are worked on, one at a time, under their locks."""

    def __init__(
        self,
        database: Database,
        shelf: PolicyShelf,
        announce: Announce,
        *,
        asks: Mapping[str, Asks] = MappingProxyType({}),
        wake: Callable[[], None] = lambda: None,
        takes_bounces: bool = False,
    ) -> None:
        self._database = database
        self._shelf = shelf
        self._announce = announce
        self._asks = asks
        self.wake: Final = wake
        """Tells the claim loops that there may be work."""
        self._takes_bounces = takes_bounces

    @contextmanager
    def open(self, notice_id: UUID) -> Iterator[Book]:
        """The book of a notice on a connection of its own; settled, committed, announced."""
        with self._database.connection() as connection, self.open_on(connection, notice_id) as book:
            yield book

    @contextmanager
    def open_on(
        self, connection: PooledConnection, notice_id: UUID, *, patience_ms: int | None = None
    ) -> Iterator[Book]:
        """As `open`, on a connection that is at hand and in no transaction.

        `patience_ms` is how long to wait for whoever holds the notice (None: the usual time).
        """
        with held(connection, notice_id, patience_ms=patience_ms) as book:
            # On this connection: who holds one and waits for a second can wait for himself.
            self._shelf.fetch(connection, book.notice.policy_revision)
            yield book
            self._settle(book)
        self._announce(book.entries)
        if any(_is_work(entry) for entry in book.entries):
            self.wake()

    def policy_of(self, book: Book) -> Policy:
        """The policy under which the notice was admitted."""
        return self._shelf.of(book.notice.policy_revision)

    def settle_at_intent(self, book: Book) -> None:
        """Ask the rules as the holder of a claimed text does, just before its intent."""
        for step in at_intent(self._view(book, self.policy_of(book))):
            write_step(book, step)

    def _view(self, book: Book, policy: Policy) -> NoticeView:
        return view_of(book, policy, takes_bounces=self._takes_bounces)

    def _settle(self, book: Book) -> None:
        policy = self.policy_of(book)
        for step in settle(self._view(book, policy)):
            write_step(book, step)
        fallback_at = next_fallback_at(self._view(book, policy))
        if fallback_at != book.notice.fallback_at:
            book.amend_notice(fallback_at=fallback_at)
        for channel in book.deliveries:
            self._plan_looks(book, channel, policy)
        state, basis = state_of(book)
        book.set_state(state, basis)

    def _plan_looks(self, book: Book, channel: Channel, policy: Policy) -> None:
        """Set or clear when a provider is asked next; only a move begins a new count."""
        delivery = book.deliveries[channel]
        wait_s = self._first_look_s(delivery, policy)
        if wait_s is None:
            if delivery.next_check_at is not None:
                book.amend(channel, next_check_at=None)
        elif book.has_moved(channel) or delivery.next_check_at is None:
            due = book.now + timedelta(seconds=wait_s)
            book.amend(channel, next_check_at=due, looks=0, absent_looks=0)

    def _first_look_s(self, delivery: HeldDelivery, policy: Policy) -> float | None:
        asks = self._asks.get(delivery.provider or "", NOT_ASKED)
        if delivery.state is DeliveryState.UNKNOWN and asks.can_find:
            return policy.reconcile_delay(1)
        waits = delivery.state is DeliveryState.ACCEPTED and not delivery.final_acceptance
        return policy.poll_every_s if waits and asks.can_poll else None


def _is_work(entry: TrailEntry) -> bool:
    return entry.to_state == DeliveryState.QUEUED or entry.reason == Reason.REPLAY_AUTHORISED


def view_of(book: Book, policy: Policy, *, takes_bounces: bool) -> NoticeView:
    """What the rules may look at."""
    notice = book.notice
    return NoticeView(
        now=book.now,
        expires_at=notice.expires_at,
        mode=PolicyMode(notice.mode),
        email=_delivery_view(book, Channel.EMAIL),
        sms=_delivery_view(book, Channel.SMS),
        fallback_at=notice.fallback_at,
        on_unknown=policy.on_unknown,
        on_unconfirmed=policy.on_unconfirmed,
        takes_bounces=takes_bounces,
        canceled=notice.canceled_at is not None,
        hold_noted=notice.hold_noted,
        email_arrived_at=book.deliveries[Channel.EMAIL].arrived_at,
        sms_queued_at=book.deliveries[Channel.SMS].requeued_at,
        avoidable_noted=notice.avoidable_noted,
    )


def _delivery_view(book: Book, channel: Channel) -> DeliveryView:
    delivery = book.deliveries[channel]
    attempt = book.open_attempt(channel)
    return DeliveryView(
        state=delivery.state,
        stop_at=delivery.stop_at,
        halted=book.is_halted(channel),
        ever_attempted=delivery.attempts > 0,
        call_deadline=attempt.deadline if attempt else None,
        acceptance_is_final=delivery.final_acceptance,
    )


def write_step(book: Book, step: Step) -> None:
    """Write one step of the rules."""
    if isinstance(step, Decision):
        due: dict[str, Any] = {}
        if step.to_state is DeliveryState.QUEUED:
            due = {"due_at": book.now, "requeued_at": book.now}
        book.move(step.channel, step.to_state, step.reason, origin=RULES, **due)
        return
    book.note(step.channel, step.reason, origin=RULES)
    noted = "hold_noted" if step.reason is Reason.FALLBACK_HELD else "avoidable_noted"
    book.amend_notice(**{noted: True})


def state_of(book: Book) -> tuple[NoticeState, str | None]:
    """The notice's state as a function of its deliveries."""
    return notice_state(
        _facts(book, Channel.EMAIL),
        _facts(book, Channel.SMS),
        canceled=book.notice.canceled_at is not None,
        sms_is_fallback=book.deliveries[Channel.SMS].is_fallback,
    )


def _facts(book: Book, channel: Channel) -> DeliveryFacts:
    delivery = book.deliveries[channel]
    return DeliveryFacts(delivery.state, delivery.final_acceptance)
