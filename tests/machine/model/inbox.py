"""Receipts (6.3) and looks (6.2): what a provider tells, and what its silence proves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from tests.machine.model.facts import ENDED, WAITING, Attempt, Delivery, Notice
from tests.machine.model.world import Told, World

RANK = {"attempted": 0, "unknown": 0, "accepted": 1, "delivered": 2, "failed": 3}
AGREEING = 3
CLOCKS_APART = timedelta(seconds=5)
Place = tuple[Notice, Delivery, Attempt]


def told(world: World, receipt: Told, now: datetime) -> None:
    """A receipt arrives: applied at once where its attempt is known, else parked."""
    place = place_of(world, receipt)
    if place is None:
        world.parked.append(receipt)
        return
    apply(world, *place, receipt, now)
    world.settle(place[0], now)


def place_of(world: World, receipt: Told) -> Place | None:
    """The attempt that a receipt is about: by the provider's id, else by our reference."""
    places = [each for each in _places(world) if each[2].provider == receipt.provider]
    by_id = [each for each in places if receipt.by_id and each[2].message_id == receipt.by_id]
    by_reference = [each for each in places if each[2].reference == receipt.reference]
    return next(iter(by_id + by_reference), None)


def _places(world: World) -> Iterator[Place]:
    for notice in world.notices.values():
        for delivery in notice.both:
            for attempt in delivery.attempts:
                yield notice, delivery, attempt


def apply(
    world: World, notice: Notice, delivery: Delivery, attempt: Attempt, receipt: Told, now: datetime
) -> None:
    """What one receipt changes: the highest fact seen while the delivery is open."""
    telling = receipt.status in {"accepted", "delivered", "failed"}
    closed = now >= notice.expires_at or delivery.state in ENDED
    left_to_holder = closed and delivery.state == "attempted"  # 11.3
    end = _end(delivery, attempt, receipt, closed=closed)
    if end is None:
        notice.note(delivery, _fact(delivery, receipt, telling=telling, closed=closed))
    else:
        notice.move(delivery, end[0], end[1])
        seen_at = receipt.occurred_at or now
        delivery.may_have_left = delivery.left = True
        if end[0] == "delivered":
            delivery.arrived_at = seen_at
        if end[0] == "failed":
            delivery.arrived_at = None
    if telling and not left_to_holder:
        attempt.open = False
    if receipt.by_id and attempt.message_id is None:
        attempt.message_id = receipt.by_id
        apply_waiting(world, notice, delivery, attempt, now)


def _end(
    delivery: Delivery, attempt: Attempt, receipt: Told, *, closed: bool
) -> tuple[str, str] | None:
    rank = RANK.get(receipt.status, 0)
    if closed or not rank:
        return None
    if receipt.status == "failed" and attempt is not delivery.attempts[-1]:
        return None  # says nothing about the newest one
    if delivery.state in WAITING:
        return receipt.status, "earlier_attempt_found"
    if rank <= RANK[delivery.state]:
        return None
    if delivery.state == "delivered":
        return "failed", "bounced_after_delivery"
    looked_up = receipt.asked and delivery.state == "unknown"
    return receipt.status, "reconciled" if looked_up else "receipt"


def _fact(delivery: Delivery, receipt: Told, *, telling: bool, closed: bool) -> str:
    if not telling:
        return "unmapped" if receipt.status == "unmapped" else "fact_receipt"
    if not closed:
        return "fact_receipt"
    arrived = receipt.status != "failed"
    against = (delivery.state == "failed" and arrived) or (
        delivery.state == "delivered" and not arrived
    )
    return "contradicting_receipt" if against else "late_receipt"


def apply_waiting(
    world: World, notice: Notice, delivery: Delivery, attempt: Attempt, now: datetime
) -> None:
    """Whatever teaches us an attempt's id applies what waited for it (6 of 6.1)."""
    waiting = [
        each
        for each in world.parked
        if each.provider == attempt.provider
        and (
            (each.by_id and each.by_id == attempt.message_id) or each.reference == attempt.reference
        )
    ]
    for each in sorted(waiting, key=lambda one: one.occurred_at or one.received_at):
        if each in world.parked:
            world.parked.remove(each)
            apply(world, notice, delivery, attempt, each, now)


def due_to_sweep(world: World, now: datetime) -> list[Told]:
    """What a sweep looks at now: first what it never looked at, then the longest waiting."""
    due = [each for each in world.parked if (each.look_at or now) <= now]
    return sorted(due, key=lambda one: (one.look_at is not None, one.look_at or now, one.number))


def sweep_parked(world: World, now: datetime) -> None:
    """Apply what is known by now; a stranger is looked at less and less often."""
    known = []
    for each in due_to_sweep(world, now):
        if place_of(world, each) is not None:
            known.append(each)
        else:
            each.look_at = now + max(now - each.received_at, timedelta(seconds=1))
    for each in known:
        place = place_of(world, each)
        if place is not None and each in world.parked:
            world.parked.remove(each)
            apply(world, *place, each, now)
            world.settle(place[0], now)


# --- looks


def found_nothing(
    world: World,
    notice: Notice,
    delivery: Delivery,
    attempt: Attempt,
    now: datetime,
    *,
    by_reference: bool,
) -> None:
    """6.2: proof only where everything agrees, and never after the worker was lost."""
    if delivery.state == "unknown" and delivery.attempts[-1] is attempt and attempt.open:
        notice.note(delivery, "looked_not_found")
        delivery.absences += 1
        settled = attempt.ended_at is not None and now - attempt.ended_at >= timedelta(
            seconds=world.terms.settle
        )
        named = world.terms.absence_counts and by_reference
        if named and settled and attempt.answered and delivery.absences >= AGREEING:
            _absent(notice, delivery, attempt, now)
    world.settle(notice, now)


def _absent(notice: Notice, delivery: Delivery, attempt: Attempt, now: datetime) -> None:
    attempt.open, attempt.proven_unsent = False, True
    delivery.may_have_left = False
    if notice.canceled:
        notice.move(delivery, "canceled", "canceled_before_retry")
    elif now >= delivery.stop_at:
        notice.move(delivery, "failed", "absent_no_time_left")
    else:
        notice.move(delivery, "queued", "reconciled_absent")
        delivery.due_at = now


def told_nothing(world: World, notice: Notice, delivery: Delivery, now: datetime) -> None:
    """A look without a usable answer: looks that find nothing must follow one another."""
    if delivery.state == "unknown":
        delivery.absences = 0
    world.settle(notice, now)


def has_rivals(world: World, notice: Notice, delivery: Delivery, attempt: Attempt) -> bool:
    """By destination and time a hit counts only if no other attempt there can own it; what
    bears the attempt's own id cannot be another's."""
    if attempt.message_id is not None:
        return False
    since, until = attempt.started_at - CLOCKS_APART, attempt.deadline + CLOCKS_APART
    number = notice.contacts.get(delivery.channel)
    return any(
        other.contacts.get(delivery.channel) == number
        and rival is not attempt
        and rival.provider == attempt.provider
        and rival.message_id is None
        and rival.started_at < until
        and rival.deadline > since
        and (not rival.answered or rival.open)
        for other, at, rival in _places(world)
        if at.channel == delivery.channel
    )
