"""Replay (6.2): the same call under the same key, authorised by a look and made by who sends."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.machine.model.facts import Attempt, Delivery, Notice
from tests.machine.model.protocol import text_first
from tests.machine.model.world import World


def authorise(world: World, notice: Notice, delivery: Delivery, now: datetime) -> None:
    """A look only marks the row, once an attempt and only where a replay can still help."""
    attempt = delivery.attempts[-1]
    helps = (
        not notice.canceled and now < delivery.stop_at and not _text_was_queued(notice, delivery)
    )
    if delivery.state == "unknown" and attempt.open and helps and not attempt.authorised:
        notice.note(delivery, "replay_authorised")
        attempt.authorised = True
        delivery.replay_due = now
    world.settle(notice, now)


def _text_was_queued(notice: Notice, delivery: Delivery) -> bool:
    """Once the fallback is queued, no move of the email leads to another start."""
    return delivery.channel == "email" and notice.sms.chosen_at is not None


def _fallback_taken(world: World, notice: Notice, delivery: Delivery, now: datetime) -> bool:
    about_to = text_first(world, notice, delivery.channel, now) and not notice.hold_noted
    return about_to or _text_was_queued(notice, delivery)


def _key_too_old(world: World, attempt: Attempt, now: datetime) -> bool:
    return now >= attempt.started_at + timedelta(seconds=world.terms.key_life / 2)


def is_claimable(world: World, notice: Notice, channel: str, now: datetime) -> bool:
    """A mark that is due and could be followed now; the delivery stays unknown."""
    delivery = notice.on(channel)
    if delivery.state != "unknown" or delivery.replay_due is None:
        return False
    attempt = delivery.attempts[-1]
    held = world.is_halted(notice, channel) or world.is_paused(delivery.provider, now)
    in_time = delivery.replay_due <= now < delivery.stop_at
    stands = attempt.open and not notice.canceled and not _key_too_old(world, attempt, now)
    return in_time and stands and not held and not _fallback_taken(world, notice, delivery, now)


def claimed(world: World, delivery: Delivery, now: datetime) -> None:
    delivery.fence += 1
    delivery.replay_due = now + timedelta(seconds=world.terms.lease)


def drop(world: World, notice: Notice, channel: str, fence: int, now: datetime) -> None:
    """The attempt is not repeated; somebody else's mark is left alone."""
    delivery = notice.on(channel)
    if delivery.fence == fence:
        delivery.replay_due = None
    world.settle(notice, now)


def verdict(
    world: World,
    notice: Notice,
    channel: str,
    claim: tuple[int, str, str],
    now: datetime,
    turn: datetime | None,
) -> str:
    """A replay is a start with all of an intent's guards, and some more."""
    fence, reference, _ = claim
    delivery = notice.on(channel)
    attempt = next(each for each in delivery.attempts if each.reference == reference)
    fallback = channel == "sms" and notice.mode == "email_then_sms"
    guards = {
        "resolved": delivery.state != "unknown" or not attempt.open,
        "started_before": attempt.replayed,
        "fenced": delivery.replay_due is None or delivery.fence != fence,
        "canceled": notice.canceled,
        "too_late": now >= delivery.stop_at,
        "superseded": notice.superseded,
        "fallback_taken": _fallback_taken(world, notice, delivery, now),
        "not_needed": fallback and notice.email.arrived,
        "halted": world.is_halted(notice, channel),
        "paused": world.is_shut(delivery.provider, turn),
        "key_too_old": _key_too_old(world, attempt, now),
    }
    return next((name for name, holds in guards.items() if holds), "started")


def begin(
    world: World,
    notice: Notice,
    channel: str,
    claim: tuple[int, str, str],
    now: datetime,
    *,
    same: bool,
    turn: datetime | None,
) -> bool:
    """Whether the call may be repeated; `claim`: fence, reference, owner; `same`: the rendering."""
    fence, _, owner = claim
    said = verdict(world, notice, channel, claim, now, turn)
    if said == "started" and not same:
        said = "changed"
    match said:
        case "started":
            _start(world, notice, notice.on(channel), owner, now)
        case "superseded":
            world.cancel(notice, "superseded", now)
            drop(world, notice, channel, fence, now)
        case "canceled" | "too_late" | "fallback_taken" | "not_needed" | "key_too_old" | "changed":
            drop(world, notice, channel, fence, now)
        case _:
            pass
    return said == "started"


def _start(world: World, notice: Notice, delivery: Delivery, owner: str, now: datetime) -> None:
    attempt = delivery.attempts[-1]
    assert now < delivery.stop_at, "P5: replayed after the stop time"
    assert attempt.open, "replayed although its fate is known"
    assert not attempt.replayed, "replayed twice"
    assert not notice.canceled, "replayed after a cancel"
    assert not _text_was_queued(notice, delivery), "replayed after the fallback"
    notice.move(delivery, "attempted", "replay_started")
    attempt.replayed, attempt.replay_waits = True, True
    attempt.deadline = min(now + world.terms.budget(delivery.channel), delivery.stop_at)
    delivery.replay_due = None
    delivery.owner, delivery.lease_until = owner, attempt.deadline


def is_needed(delivery: Delivery, fence: int, now: datetime) -> bool:
    """The last look: a replay is dropped where the attempt is resolved or not ours any more."""
    attempt = delivery.attempts[-1]
    ours = delivery.state == "attempted" and delivery.fence == fence
    return attempt.open and ours and delivery.lease_until is not None and now < delivery.lease_until
