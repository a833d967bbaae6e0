"""The facts about one notice in memory: what a call came to, what a provider tells, a cancel.

Each function stands for one transaction of the product and writes what that one writes; what it
decides is asked of `domain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from notifier.domain.answers import Asked, Ruling, rule, why_unknown
from notifier.domain.backoff import next_retry_at
from notifier.domain.cancels import CANCELS, OVER, STOPPABLE
from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import Known, ReceiptStatus, judge
from notifier.domain.states import Channel, DeliveryState
from notifier.rehearsal.notice import Attempt, Delivery, Notice

_S = DeliveryState

_TELLING: Final = frozenset({ReceiptStatus.ACCEPTED, ReceiptStatus.DELIVERED, ReceiptStatus.FAILED})


@dataclass(frozen=True, slots=True)
class News:
    """What a provider tells; `occurred_at` is None where it is told as it happens."""

    status: ReceiptStatus
    detail: Detail | None = None
    occurred_at: datetime | None = None


def no_jitter() -> float:
    """Chance that neither stretches nor shrinks a wait."""
    return 0.5


def answer(notice: Notice, attempt: Attempt, outcome: Outcome, *, is_replay: bool) -> None:
    """Write what a call came to, as a fact about its attempt."""
    notice.open()
    delivery = notice.deliveries[attempt.channel]
    retry_at = _retry_at(notice, attempt, outcome)
    ruling = rule(
        Asked(
            state=delivery.state,
            attempt_is_open=not attempt.resolved,
            closed=notice.closed,
            canceled=notice.canceled,
            retry_at=retry_at,
            replayed=attempt.replay_started,
            is_replay=is_replay,
            was=why_unknown(attempt.reason),
        ),
        outcome,
    )
    _keep_answer(notice.now, attempt, outcome)
    if ruling.to_state is None:
        notice.note(attempt.channel, ruling.reason, detail=ruling.detail)
    else:
        _apply(notice, attempt.channel, ruling, ruling.to_state, retry_at)
    notice.settle()


def _retry_at(notice: Notice, attempt: Attempt, outcome: Outcome) -> datetime | None:
    pause = outcome.pause if isinstance(outcome, NotAccepted) else None
    return next_retry_at(
        notice.policy,
        failures=attempt.number,
        now=notice.now,
        stop_at=notice.deliveries[attempt.channel].stop_at,
        rand=no_jitter,
        asked_wait_s=(pause.seconds or 0.0) if pause else 0.0,
    )


def _keep_answer(now: datetime, attempt: Attempt, outcome: Outcome) -> None:
    """An answer never overwrites what is known: a receipt may have resolved the attempt."""
    is_accepted = isinstance(outcome, Accepted)
    attempt.call_ended = True
    attempt.message_known = attempt.message_known or is_accepted
    if (attempt.resolved and attempt.outcome) or (attempt.replay_started and not is_accepted):
        return
    attempt.finished_at, attempt.outcome = now, outcome.kind
    match outcome:
        case Unknown(reason=reason):
            attempt.reason = reason
        case Refused(detail=detail) | NotAccepted(detail=detail):
            attempt.reason, attempt.resolved = detail, True
        case Accepted():
            attempt.resolved = True


def _apply(
    notice: Notice,
    channel: Channel,
    ruling: Ruling,
    to_state: DeliveryState,
    retry_at: datetime | None,
) -> None:
    delivery = notice.move(channel, to_state, ruling.reason, detail=ruling.detail)
    match to_state:
        case DeliveryState.ACCEPTED:
            reports = notice.script.channel(channel).kind.reports_deliveries
            final = notice.policy.acceptance_is_final(reports_deliveries=reports)
            delivery.final_acceptance, delivery.left_at = final, notice.now
            delivery.arrived_at = notice.now if final else delivery.arrived_at
        case DeliveryState.QUEUED if retry_at:
            delivery.due_at, delivery.may_have_left = retry_at, False
        case DeliveryState.FAILED | DeliveryState.CANCELED:
            delivery.may_have_left = False
        case _:
            return


def receipt(notice: Notice, attempt: Attempt, news: News, *, asked: bool) -> None:
    """Write what a provider tells, by callback or (`asked`) because we looked."""
    notice.open()
    channel, delivery, closed = attempt.channel, notice.deliveries[attempt.channel], notice.closed
    known = Known(delivery.state, closed, is_latest=attempt.number == delivery.attempts)
    verdict = judge(known, news.status, news.detail, asked=asked)
    left_to_holder = closed and delivery.state is _S.ATTEMPTED
    attempt.message_known = True
    attempt.resolved = attempt.resolved or (news.status in _TELLING and not left_to_holder)
    seen_at = news.occurred_at or notice.now
    if verdict.to_state is None:
        notice.note(channel, verdict.reason, detail=verdict.detail, occurred_at=seen_at)
    else:
        notice.move(
            channel, verdict.to_state, verdict.reason, detail=verdict.detail, occurred_at=seen_at
        )
        _keep_seen(delivery, verdict.to_state, seen_at)
    notice.settle()


def _keep_seen(delivery: Delivery, to_state: DeliveryState, seen_at: datetime) -> None:
    delivery.may_have_left = True
    delivery.left_at = delivery.left_at or seen_at
    if to_state is _S.DELIVERED:
        delivery.arrived_at = seen_at
    if to_state is _S.FAILED:
        delivery.arrived_at = None


def cancel(notice: Notice, why: str) -> None:
    """End a notice whose reset has ended, inside a transaction that is open."""
    if notice.closed or notice.state in OVER or notice.canceled:
        return
    notice.ended_by = CANCELS[why]
    notice.note(None, Reason.CANCEL_RECORDED)
    for channel, delivery in notice.deliveries.items():
        if delivery.state in STOPPABLE:
            notice.move(channel, _S.CANCELED, CANCELS[why])
