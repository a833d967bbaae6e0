"""The six steps (6.1), rescue, and what an answer means for its attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.machine.model.facts import GRACE, WAITING, Attempt, Delivery, Notice
from tests.machine.model.inbox import apply_waiting
from tests.machine.model.world import World


@dataclass(frozen=True)
class Answer:
    """What a call came to: accepted, refused, not_accepted or unknown (`reason`)."""

    kind: str
    reason: str = ""
    message_id: str | None = None
    pause: float | None = None


def is_claimable(world: World, notice: Notice, channel: str, now: datetime) -> bool:
    delivery = notice.on(channel)
    due = delivery.state == "queued" and delivery.due_at <= now < delivery.stop_at
    held = world.is_halted(notice, channel) or world.is_paused(delivery.provider, now)
    return due and not held and not notice.canceled and not text_first(world, notice, channel, now)


def text_first(world: World, notice: Notice, channel: str, now: datetime) -> bool:
    """From the fallback time on an unsent email is not started while a text can go."""
    sms = notice.sms
    due = notice.fallback_at is not None and now >= notice.fallback_at
    can_go = sms.state == "standby" and now < sms.stop_at and not sms.attempts
    return channel == "email" and due and can_go and not world.is_halted(notice, "sms")


def claimed(world: World, notice: Notice, channel: str, owner: str, now: datetime) -> None:
    delivery = notice.on(channel)
    notice.move(delivery, "claimed", "claimed")
    delivery.fence += 1
    delivery.owner = owner
    delivery.lease_until = now + timedelta(seconds=world.terms.lease)


def is_ours(delivery: Delivery, fence: int) -> bool:
    return delivery.state == "claimed" and delivery.fence == fence


def put(
    world: World,
    notice: Notice,
    channel: str,
    fence: int,
    end: str,
    reason: str,
    *,
    now: datetime,
) -> None:
    """Put a claim elsewhere, if it is still the holder's."""
    delivery = notice.on(channel)
    if is_ours(delivery, fence):
        notice.move(delivery, end, reason)
    world.settle(notice, now)


def verdict(  # noqa: PLR0911 - one guard after the other
    world: World,
    notice: Notice,
    channel: str,
    fence: int,
    now: datetime,
    turn: datetime | None,
) -> str:
    """What the intent's own guards say (4 of 6.1)."""
    delivery = notice.on(channel)
    email = notice.email
    if not is_ours(delivery, fence):
        return "fenced"
    if now >= delivery.stop_at:
        return "too_late"
    if notice.superseded:
        return "superseded"
    if text_first(world, notice, channel, now):
        return "fallback_due"
    fallback = channel == "sms" and notice.mode == "email_then_sms"
    if fallback and not delivery.attempts and email.arrived:
        return "not_needed"
    if world.is_halted(notice, channel):
        return "halted"
    return "paused" if world.is_shut(delivery.provider, turn) else "started"


def intended(
    world: World,
    notice: Notice,
    channel: str,
    fence: int,
    reference: str,
    now: datetime,
    *,
    turn: datetime | None,
) -> str:
    said = verdict(world, notice, channel, fence, now, turn)
    delivery = notice.on(channel)
    match said:
        case "started":
            _start(world, notice, delivery, reference, now)
        case "fenced":
            pass
        case "superseded":
            world.cancel(notice, "superseded", now)
        case "not_needed":
            world.settle(notice, now, at_intent=True)
        case "halted":
            put(world, notice, channel, fence, "queued", "halted", now=now)
        case "paused":
            put(world, notice, channel, fence, "queued", "provider_paused", now=now)
        case _:
            world.settle(notice, now)
    return said


def _start(world: World, notice: Notice, delivery: Delivery, reference: str, now: datetime) -> None:
    """A start is an intent commit; every promise about starts is asked here."""
    assert now < delivery.stop_at, "P5: started after the stop time"
    assert delivery.open_attempt is None, "P3: a second start while one is unresolved"
    assert all(each.proven_unsent for each in delivery.attempts), "P3: sent again on a guess"
    assert not notice.canceled, "started after a cancel"
    deadline = min(now + world.terms.budget(delivery.channel), delivery.stop_at)
    notice.move(delivery, "attempted", "attempt_started")
    number = len(delivery.attempts) + 1
    delivery.attempts.append(Attempt(number, reference, delivery.provider, now, deadline))
    delivery.lease_until = deadline
    delivery.may_have_left = True


# --- answers


def answered(
    world: World,
    notice: Notice,
    channel: str,
    reference: str,
    answer: Answer,
    now: datetime,
    *,
    turn: datetime | None = None,
    by_replay: bool = False,
) -> None:
    """The answer belongs to its attempt, whoever holds the lease now (6 of 6.1)."""
    delivery = notice.on(channel)
    attempt = next(each for each in delivery.attempts if each.reference == reference)
    _judge(world, notice, delivery, attempt, answer, now, by_replay=by_replay)
    if by_replay:
        attempt.replay_waits = False
    else:
        attempt.answered = True
    if not attempt.replayed or answer.kind == "accepted":
        _known(attempt, answer, now)
    if answer.message_id:
        attempt.message_id = answer.message_id
    if world.reports[channel]:
        apply_waiting(world, notice, delivery, attempt, now)
    until = None
    if answer.pause is not None:
        until = now + timedelta(seconds=answer.pause or world.terms.pause)
    world.heard(attempt.provider, turn, answer.kind, until)
    world.settle(notice, now)


def _known(attempt: Attempt, answer: Answer, now: datetime) -> None:
    attempt.ended_at = attempt.ended_at or now
    if answer.kind == "unknown":
        attempt.why = answer.reason
    else:
        attempt.open = False


def _judge(
    world: World,
    notice: Notice,
    delivery: Delivery,
    attempt: Attempt,
    answer: Answer,
    now: datetime,
    *,
    by_replay: bool,
) -> None:
    closed = now >= notice.expires_at
    holds = delivery.state == "attempted" and delivery.attempts[-1] is attempt
    late = delivery.state == "unknown" and attempt.open and not closed
    if attempt.replayed and answer.kind != "accepted":
        return _proves_nothing(notice, delivery, attempt, answer, back=by_replay and holds)
    if not holds and not late:
        if answer.kind == "accepted" and delivery.state in WAITING and not closed:
            _accept(world, notice, delivery, "earlier_attempt_found", now)
        else:
            notice.note(delivery, "late_outcome")
        return None
    late = late or (attempt.replayed and not by_replay)
    match answer.kind:
        case "accepted":
            _accept(world, notice, delivery, "late_answer" if late else "provider_accepted", now)
        case "refused":
            notice.move(delivery, "failed", "late_answer" if late else "refused")
            delivery.may_have_left = False
        case "not_accepted":
            attempt.proven_unsent = True
            _try_again(world, notice, delivery, attempt, answer, now)
        case _ if holds:
            notice.move(delivery, "unknown", answer.reason)
            delivery.absences = 0
        case _:
            notice.note(delivery, "late_outcome")
    return None


def _proves_nothing(
    notice: Notice, delivery: Delivery, attempt: Attempt, answer: Answer, *, back: bool
) -> None:
    """6.2: of two calls under one key, what one did not bring about the other may have."""
    if back:
        reason = answer.reason if answer.kind == "unknown" else attempt.why
        notice.move(delivery, "unknown", reason)
        delivery.absences = 0
    else:
        notice.note(delivery, "late_outcome")


def _accept(world: World, notice: Notice, delivery: Delivery, reason: str, now: datetime) -> None:
    notice.move(delivery, "accepted", reason)
    delivery.left = True
    delivery.final = world.terms.final_email and not world.reports[delivery.channel]
    if delivery.final:
        delivery.arrived_at = now


def _try_again(
    world: World,
    notice: Notice,
    delivery: Delivery,
    attempt: Attempt,
    answer: Answer,
    now: datetime,
) -> None:
    delivery.may_have_left = False
    wait = max(world.terms.retry_after(attempt.number), timedelta(seconds=answer.pause or 0))
    if notice.canceled:
        notice.move(delivery, "canceled", "canceled_before_retry")
    elif now + wait >= delivery.stop_at:
        notice.move(delivery, "failed", "not_accepted_no_time_left")
    else:
        notice.move(delivery, "queued", "not_accepted")
        delivery.due_at = now + wait


# --- rescue


def rescued(world: World, now: datetime) -> None:
    """A lapsed claim goes back to the queue, a lapsed attempt is unknown."""
    for notice in world.notices.values():
        if any(each.lease_until and each.lease_until + GRACE < now for each in notice.both):
            for each in notice.both:
                _take_back(notice, each, now)
            world.settle(notice, now)


def _take_back(notice: Notice, delivery: Delivery, now: datetime) -> None:
    if delivery.lease_until is None or delivery.lease_until + GRACE > now:
        return
    if delivery.state == "claimed":
        notice.move(delivery, "queued", "lease_expired")
        delivery.due_at = now
        return
    if attempt := delivery.open_attempt:
        attempt.why = "worker_lost"
    notice.move(delivery, "unknown", "worker_lost")
    delivery.absences = 0
