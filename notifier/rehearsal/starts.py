"""What leads to a call over one notice in memory: claim, link, intent, and the same for a replay.

Each function stands for one transaction of the product and writes what that one writes. The
guards that stand in SQL there are asked of the rules here: `settle` tells whether a start would
have to stand back.
"""

from __future__ import annotations

from datetime import timedelta

from notifier.domain.backoff import next_link_try_at
from notifier.domain.call_limits import call_budget
from notifier.domain.cancels import CANCELS
from notifier.domain.fallback import at_intent, settle
from notifier.domain.fallback_view import Decision
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState
from notifier.rehearsal.facts import cancel, no_jitter
from notifier.rehearsal.notice import Attempt, Delivery, Notice

_S = DeliveryState


def may_claim(notice: Notice, channel: Channel) -> bool:
    """Whether a worker would get this delivery now; a paused provider is not asked here."""
    delivery = notice.deliveries[channel]
    return (
        delivery.state is _S.QUEUED
        and delivery.due_at <= notice.now < delivery.stop_at
        and is_free(notice, channel)
    )


def is_free(notice: Notice, channel: Channel) -> bool:
    """Whether nothing but time keeps a queued delivery, or a marked replay, from its worker."""
    if notice.canceled or notice.is_halted(channel):
        return False
    attempt = notice.open_attempt(channel)
    if attempt and notice.deliveries[channel].replay_due_at is not None:
        return _replay_permitted(notice, notice.deliveries[channel], attempt)
    return channel is Channel.SMS or not _makes_way(notice)


def _makes_way(notice: Notice) -> bool:
    """Whether the rules would put the email aside, asked now."""
    if notice.fallback_at is None or notice.now < notice.fallback_at:
        return False
    return any(
        isinstance(step, Decision)
        and step.channel is Channel.EMAIL
        and step.reason is Reason.FALLBACK_GOES_FIRST
        for step in settle(notice.view())
    )


def claim(notice: Notice, channel: Channel) -> Delivery:
    """Lease a queued delivery."""
    delivery = notice.move(channel, _S.CLAIMED, Reason.CLAIMED)
    delivery.fence += 1
    delivery.lease_until = notice.now + timedelta(seconds=notice.policy.lease_s)
    return delivery


def is_held(notice: Notice, channel: Channel, fence: int) -> bool:
    """Whether a claim is still its worker's."""
    delivery = notice.deliveries[channel]
    return delivery.state is _S.CLAIMED and delivery.fence == fence


def no_link(notice: Notice, channel: Channel, fence: int, answer: str) -> None:
    """What the auth service's answer makes of a claim where there is no link in it."""
    notice.open()
    if answer in CANCELS:
        cancel(notice, answer)
    elif is_held(notice, channel, fence) and answer == "unavailable":
        _ask_later(notice, channel)
    elif is_held(notice, channel, fence):
        notice.move(channel, _S.SUPPRESSED, Reason(answer))
    notice.settle()


def _ask_later(notice: Notice, channel: Channel) -> None:
    delivery = notice.move(channel, _S.QUEUED, Reason.LINK_UNAVAILABLE)
    delivery.link_tries += 1
    due = next_link_try_at(
        failures=delivery.link_tries, now=notice.now, stop_at=delivery.stop_at, rand=no_jitter
    )
    delivery.due_at = due or delivery.stop_at


def intent(notice: Notice, channel: Channel, fence: int, *, paused: bool) -> Attempt | None:
    """Ask every guard and begin an attempt; None where one of them forbids it."""
    if not is_held(notice, channel, fence):
        return None
    notice.open()
    _stand_back(notice, channel)
    if not is_held(notice, channel, fence):
        notice.settle()
        return None
    if notice.is_halted(channel) or paused:
        why = Reason.HALTED if notice.is_halted(channel) else Reason.PROVIDER_PAUSED
        notice.move(channel, _S.QUEUED, why)
        notice.settle()
        return None
    return _begin(notice, channel)


def _stand_back(notice: Notice, channel: Channel) -> None:
    """What the rules say at the last moment, where they say anything about this channel."""
    steps = at_intent(notice.view())
    if any(isinstance(step, Decision) and step.channel is channel for step in steps):
        for step in steps:
            notice.write_step(step)


def _begin(notice: Notice, channel: Channel) -> Attempt:
    delivery = notice.move(channel, _S.ATTEMPTED, Reason.ATTEMPT_STARTED)
    delivery.attempts += 1
    delivery.may_have_left = True
    deadline = min(notice.now + call_budget(notice.policy, channel), delivery.stop_at)
    delivery.lease_until = deadline
    attempt = Attempt(channel, delivery.attempts, notice.now, deadline)
    notice.attempts.append(attempt)
    return attempt


# --- a replay


def may_claim_replay(notice: Notice, channel: Channel) -> bool:
    """Whether a worker would get the mark of an authorised replay now."""
    delivery, attempt = notice.deliveries[channel], notice.open_attempt(channel)
    if delivery.replay_due_at is None or attempt is None or delivery.state is not _S.UNKNOWN:
        return False
    return delivery.replay_due_at <= notice.now and _replay_permitted(notice, delivery, attempt)


def _replay_permitted(notice: Notice, delivery: Delivery, attempt: Attempt) -> bool:
    lifetime = timedelta(seconds=notice.script.channel(delivery.channel).kind.key_lifetime_s)
    return (
        notice.now < delivery.stop_at
        and not notice.canceled
        and not notice.is_halted(delivery.channel)
        and notice.now < attempt.started_at + lifetime / 2
        and not _fallback_taken(notice, delivery.channel)
    )


def _fallback_taken(notice: Notice, channel: Channel) -> bool:
    if channel is Channel.SMS:
        return False
    taken = notice.deliveries[Channel.SMS].requeued_at is not None
    return taken or any(step.channel is Channel.SMS for step in settle(notice.view()))


def claim_replay(notice: Notice, channel: Channel) -> Delivery:
    """Take the mark by pushing it forward; the delivery stays unknown."""
    delivery = notice.deliveries[channel]
    delivery.fence += 1
    delivery.replay_due_at = notice.now + timedelta(seconds=notice.policy.lease_s)
    return delivery


def start_replay(notice: Notice, channel: Channel, fence: int) -> Attempt | None:
    """Ask every guard again and begin the same call anew; None where one forbids it."""
    delivery, attempt = notice.deliveries[channel], notice.open_attempt(channel)
    ours = delivery.fence == fence and delivery.replay_due_at is not None
    if attempt is None or not ours or not _replay_permitted(notice, delivery, attempt):
        return None
    notice.move(channel, _S.ATTEMPTED, Reason.REPLAY_STARTED)
    attempt.replay_started = True
    attempt.deadline = min(notice.now + call_budget(notice.policy, channel), delivery.stop_at)
    delivery.lease_until, delivery.next_check_at = attempt.deadline, None
    return attempt
