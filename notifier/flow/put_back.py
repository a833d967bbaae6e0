"""What becomes of a claim where no attempt is made: handed back, ended, or put aside.

Everything here begins by asking whether the claim is still ours; one that was fenced off
meanwhile is somebody else's, and nothing is written.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from notifier.domain.backoff import next_link_try_at
from notifier.domain.link_faults import LinkFault
from notifier.domain.policy import Policy
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState
from notifier.flow.cancel import write_cancel
from notifier.flow.desk import Desk
from notifier.store.ledger.book import SERVICE, WORKER, Book, Origin
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.intent import Verdict
from notifier.store.ledger.looks import Look


@contextmanager
def held_claim(desk: Desk, claim: Claim) -> Iterator[Book | None]:
    """The book of a claim's notice; None where the claim is not ours any more."""
    with desk.open(claim.notice_id) as book:
        delivery = book.deliveries[Channel(claim.channel)]
        ours = delivery.state is DeliveryState.CLAIMED and delivery.fence == claim.fence
        yield book if ours else None


def hand_back(desk: Desk, claim: Claim, reason: Reason) -> None:
    """Put a claim back into the queue, due at once; its guards keep it there while they stand."""
    with held_claim(desk, claim) as book:
        if book:
            book.move(Channel(claim.channel), DeliveryState.QUEUED, reason, origin=WORKER)


def hand_back_for_link(desk: Desk, claim: Claim, fault: LinkFault) -> None:
    """Ask for the link again later, with why there was none; uses up no attempt."""
    with held_claim(desk, claim) as book:
        if not book:
            return
        tries = claim.link_tries + 1
        due = next_link_try_at(failures=tries, now=book.now, stop_at=claim.stop_at, rand=randomness)
        book.move(
            Channel(claim.channel),
            DeliveryState.QUEUED,
            Reason.LINK_UNAVAILABLE,
            origin=SERVICE,
            detail=fault,
            due_at=due or claim.stop_at,
            link_tries=tries,
        )


def suppress(desk: Desk, claim: Claim, reason: Reason) -> None:
    """Decide not to send on this channel, as the link answer taught."""
    with held_claim(desk, claim) as book:
        if book:
            book.move(Channel(claim.channel), DeliveryState.SUPPRESSED, reason, origin=SERVICE)


def fail(desk: Desk, claim: Claim, reason: Reason) -> None:
    """Fail a claim for a fault that is proven to precede the call."""
    with held_claim(desk, claim) as book:
        if book:
            book.move(Channel(claim.channel), DeliveryState.FAILED, reason, origin=WORKER)


def stand_back(desk: Desk, claim: Claim, verdict: Verdict) -> None:
    """Put a claim where the intent's guards want it."""
    match verdict:
        case Verdict.HALTED:
            hand_back(desk, claim, Reason.HALTED)
        case Verdict.PAUSED:
            hand_back(desk, claim, Reason.PROVIDER_PAUSED)
        case Verdict.SUPERSEDED:
            end_reset(desk, claim, "superseded")
        case Verdict.NOT_NEEDED:
            stand_back_text(desk, claim)
        case Verdict.CANCELED | Verdict.TOO_LATE | Verdict.FALLBACK_DUE:
            settle(desk, claim)
        case Verdict.FENCED | Verdict.STARTED:
            return


def stand_back_text(desk: Desk, claim: Claim) -> None:
    """A claimed text makes way for an email that is known to have arrived."""
    with held_claim(desk, claim) as book:
        if book:
            desk.settle_at_intent(book)


def settle(desk: Desk, claim: Claim) -> None:
    """Let the rules end the delivery or put it aside: they run whenever a book closes."""
    with desk.open(claim.notice_id):
        pass


def end_reset(desk: Desk, asked_for: Claim | Look, why: str) -> None:
    """The auth service says that the reset itself has ended (410), asked for a link or a look."""
    with desk.open(asked_for.notice_id) as book:
        if why == "expired":
            write_shortened(book, desk.policy_of(book), book.now)
        else:
            write_cancel(book, why)


def shorten(desk: Desk, claim: Claim, expires_at: datetime) -> None:
    """The link answer's expiry is earlier than the event's."""
    with desk.open(claim.notice_id) as book:
        write_shortened(book, desk.policy_of(book), expires_at)


def write_shortened(book: Book, policy: Policy, expires_at: datetime) -> None:
    """Shorten a notice's life: its expiry and both stop times move by the same span.

    The fallback time stays ahead of the new expiry by the reserve, so that a text can still
    help.
    """
    span = book.notice.expires_at - expires_at
    if span <= timedelta(0):
        return
    evidence = {"expires_at": expires_at.isoformat()}
    book.note(None, Reason.LIFE_SHORTENED, origin=Origin("service", evidence=evidence))
    fallback_at = _earlier_fallback(book, policy, expires_at)
    book.amend_notice(expires_at=expires_at, fallback_at=fallback_at)
    for channel, delivery in list(book.deliveries.items()):
        book.amend(channel, stop_at=delivery.stop_at - span, expires_at=expires_at)


def _earlier_fallback(book: Book, policy: Policy, expires_at: datetime) -> datetime | None:
    """As at admission (design, section 4), with the life counted from there."""
    notice = book.notice
    if notice.fallback_at is None:
        return None
    life_s = (expires_at - notice.created_at).total_seconds()
    reserved = expires_at - timedelta(seconds=policy.fallback_reserve_s(max(life_s, 0.0)))
    wait_s = policy.call_timeout_s.email + policy.poll_every_s
    earliest = notice.created_at + timedelta(seconds=wait_s)
    return max(min(notice.fallback_at, reserved), earliest)


def randomness() -> float:
    """A number from 0 up to 1, for jitter."""
    return secrets.randbelow(1_000_000) / 1_000_000
