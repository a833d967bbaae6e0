"""What the sweeps do to one notice in memory: rescue, poll, reconcile.

Ending what is out of time and deciding the fallback need no step of their own: to settle a
notice is to have the rules asked.
"""

from __future__ import annotations

from datetime import timedelta

from notifier.domain.absence import AbsenceView, after_absence, is_conclusive
from notifier.domain.call_limits import RESCUE_GRACE
from notifier.domain.outcome import OutcomeKind
from notifier.domain.reasons import Reason
from notifier.domain.replay import ReplayView, may_replay
from notifier.domain.states import Channel, DeliveryState
from notifier.rehearsal.notice import Attempt, Delivery, Notice
from notifier.rehearsal.script import Look

_S = DeliveryState


def rescue(notice: Notice) -> None:
    """Take back work whose lease ran out."""
    for channel, delivery in notice.deliveries.items():
        if delivery.lease_until is None or delivery.lease_until + RESCUE_GRACE >= notice.now:
            continue
        if delivery.state is _S.CLAIMED:
            notice.move(channel, _S.QUEUED, Reason.LEASE_EXPIRED).due_at = notice.now
            continue
        if attempt := notice.open_attempt(channel):
            attempt.outcome, attempt.reason = OutcomeKind.UNKNOWN, Reason.WORKER_LOST
        notice.move(channel, _S.UNKNOWN, Reason.WORKER_LOST)


def push_look(notice: Notice, delivery: Delivery) -> None:
    """Claim a due look by setting when the next one is due."""
    policy = notice.policy
    delivery.looks += 1
    unknown = delivery.state is _S.UNKNOWN
    wait_s = policy.reconcile_delay(delivery.looks + 1) if unknown else policy.poll_every_s
    delivery.next_check_at = notice.now + timedelta(seconds=wait_s)


def authorise(notice: Notice, channel: Channel) -> bool:
    """Mark an unknown delivery whose provider knows a key again; whether it was marked."""
    delivery, attempt = notice.deliveries[channel], notice.open_attempt(channel)
    notice.open()
    permitted = attempt is not None and may_replay(
        ReplayView(
            state=delivery.state,
            is_open=attempt.number == delivery.attempts,
            authorised=attempt.replay_authorised,
            started=attempt.replay_started,
            canceled=notice.canceled,
            fallback_taken=channel is Channel.EMAIL
            and notice.deliveries[Channel.SMS].requeued_at is not None,
            now=notice.now,
            stop_at=delivery.stop_at,
        )
    )
    if attempt and permitted:
        notice.note(channel, Reason.REPLAY_AUTHORISED)
        attempt.replay_authorised, delivery.replay_due_at = True, notice.now
    notice.settle()
    return permitted


def found_nothing(notice: Notice, channel: Channel, look: Look) -> None:
    """An unknown outcome was looked up, and the provider had no news of it."""
    notice.open()
    delivery, attempt = notice.deliveries[channel], notice.open_attempt(channel)
    if attempt and delivery.state is _S.UNKNOWN and look.found == "not_found":
        notice.note(channel, Reason.LOOKED_NOT_FOUND)
        delivery.absent_looks += 1
        if _is_conclusive(notice, delivery, attempt):
            _write_absent(notice, delivery, attempt)
    elif delivery.state is _S.UNKNOWN:
        delivery.absent_looks = 0
    notice.settle()


def _is_conclusive(notice: Notice, delivery: Delivery, attempt: Attempt) -> bool:
    script, policy = notice.script.channel(delivery.channel), notice.policy
    return is_conclusive(
        AbsenceView(
            is_believed=script.provider in policy.absence_conclusive,
            by_reference=script.kind.finds == "by_reference",
            call_ended=attempt.call_ended,
            worker_lost=attempt.reason == Reason.WORKER_LOST,
            ended_at=attempt.finished_at,
            now=notice.now,
            settle_s=policy.settle_s,
            looks=delivery.absent_looks,
        )
    )


def _write_absent(notice: Notice, delivery: Delivery, attempt: Attempt) -> None:
    attempt.resolved = True
    to_state, reason = after_absence(
        canceled=notice.canceled, now=notice.now, stop_at=delivery.stop_at
    )
    notice.move(delivery.channel, to_state, reason)
    if to_state is _S.QUEUED:
        delivery.due_at = notice.now
    delivery.may_have_left = False
