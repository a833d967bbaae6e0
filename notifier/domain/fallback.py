"""Whether a text goes, waits or is dropped, and how deliveries end when their time is up.

Level-triggered: `settle` takes what is true now and answers with every step that follows,
asked again and again until nothing changes. It is run in the transaction of every fact and
by the sweeps, over a notice that is locked; it never looks at what happened in which order,
only at what is so (design, sections 4, 11.1 to 11.5 and 11.11).

Rows of the table, first match wins: endings by the clock (`endings`), then an email that
must stand back, a text that must stand back, a text that must go, a hold to be noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from notifier.domain.event import PolicyMode
from notifier.domain.fallback_view import (
    ENDED_BADLY,
    GONE_OUT,
    UNSENT,
    Decision,
    Note,
    NoticeView,
    Step,
)
from notifier.domain.policy import SendOrHold
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState

_S = DeliveryState
_R = Reason


def settle(view: NoticeView) -> tuple[Step, ...]:
    """Every step that follows from what is true, in the order in which to write them."""
    return tuple(_until_nothing_changes(view, at_intent=False))


def at_intent(view: NoticeView) -> tuple[Step, ...]:
    """As `settle`, asked by the holder of a claimed text just before its intent.

    A claimed text stands back here, and not earlier, when the email has arrived (11.5). The
    intent may go on where the text is still `claimed` after these steps.
    """
    return tuple(_until_nothing_changes(view, at_intent=True))


def expiry_decisions(view: NoticeView) -> tuple[Decision, ...]:
    """Only the endings that the clock brings, until nothing changes."""
    steps: list[Decision] = []
    while step := next(endings(view), None):
        steps.append(step)
        view = after(view, step)
    return tuple(steps)


def next_fallback_at(view: NoticeView) -> datetime | None:
    """When the fallback is to be looked at next, once the rules have been asked.

    None once no text is in reserve: the claim keeps an email back from the fallback time on, so
    the time must not outlive the text that it was for. The time comes at once where the email
    has ended and only a halt keeps the text back: the sweep then finds it when the halt is gone.
    """
    if view.sms.state is not _S.STANDBY or view.fallback_at is None:
        return None
    has_come = _reason_at_once(view.email.state) is not None
    return min(view.fallback_at, view.now) if has_come else view.fallback_at


def after(view: NoticeView, step: Step) -> NoticeView:
    """The view once `step` has been written."""
    match step:
        case Note(reason=_R.FALLBACK_HELD):
            return replace(view, hold_noted=True)
        case Note():
            return replace(view, avoidable_noted=True)
        case Decision(channel=Channel.EMAIL):
            return replace(view, email=replace(view.email, state=step.to_state))
        case Decision(to_state=_S.QUEUED):
            queued = replace(view.sms, state=step.to_state)
            return replace(view, sms=queued, sms_queued_at=view.now)
        case Decision():
            return replace(view, sms=replace(view.sms, state=step.to_state))


def _until_nothing_changes(view: NoticeView, *, at_intent: bool) -> Iterator[Step]:
    while step := next(_next_steps(view, at_intent=at_intent), None):
        yield step
        view = after(view, step)


def _next_steps(view: NoticeView, *, at_intent: bool) -> Iterator[Step]:
    yield from endings(view)
    if view.now < view.expires_at and not view.canceled and view.mode is PolicyMode.EMAIL_THEN_SMS:
        yield from _email_comes_back(view)
        yield from _email_stands_back(view)
        yield from _text_stands_back(view, at_intent=at_intent)
        yield from _text_goes(view)
    yield from _avoidable(view)


# --- endings by the clock


def endings(view: NoticeView) -> Iterator[Decision]:
    """What has run out of time: at its stop time while unsent, at expiry whatever it is.

    An email put aside is judged first: whether a text is under way must not depend on the
    text's own ending in the same sweep.
    """
    if view.email.state is _S.STANDBY and view.now >= view.email.stop_at:
        yield _email_put_aside_ends(view)
    if view.sms.state is _S.STANDBY and view.now >= view.sms.stop_at:
        yield _text_in_reserve_ends(view)
    for channel in Channel:
        yield from _unsent_ends(view, channel)
        if view.now >= view.expires_at:
            yield from _unproven_ends(view, channel)


def _email_put_aside_ends(view: NoticeView) -> Decision:
    under_way = view.sms.state in GONE_OUT or (
        view.sms.state in UNSENT and view.now < view.sms.stop_at
    )
    if under_way:
        return Decision(Channel.EMAIL, _S.SUPPRESSED, _R.SUPERSEDED_BY_FALLBACK)
    return Decision(Channel.EMAIL, _S.EXPIRED, _out_of_time(view))


def _text_in_reserve_ends(view: NoticeView) -> Decision:
    if view.email.state is _S.DELIVERED:
        return Decision(Channel.SMS, _S.SUPPRESSED, _R.PRIMARY_DELIVERED)
    if view.email.has_arrived:
        return Decision(Channel.SMS, _S.SUPPRESSED, _R.PRIMARY_ACCEPTED_FINAL)
    if view.hold_noted and view.email.state in GONE_OUT:
        return Decision(Channel.SMS, _S.SUPPRESSED, _R.FALLBACK_HELD_BY_POLICY)
    return Decision(Channel.SMS, _S.EXPIRED, _out_of_time(view))


def _unsent_ends(view: NoticeView, channel: Channel) -> Iterator[Decision]:
    delivery = view.at(channel)
    if delivery.state in UNSENT and view.now >= min(delivery.stop_at, view.expires_at):
        yield Decision(channel, _S.EXPIRED, _out_of_time(view))


def _unproven_ends(view: NoticeView, channel: Channel) -> Iterator[Decision]:
    """An open call is left to its holder or to rescue; final acceptance and delivery stay."""
    delivery = view.at(channel)
    if delivery.state is _S.UNKNOWN:
        yield Decision(channel, _S.EXPIRED, _R.UNKNOWN_AT_EXPIRY)
    if delivery.state is _S.ACCEPTED and not delivery.acceptance_is_final:
        yield Decision(channel, _S.EXPIRED, _R.UNCONFIRMED_AT_EXPIRY)


def _out_of_time(view: NoticeView) -> Reason:
    return _R.WINDOW_CLOSED if view.now >= view.expires_at else _R.TOO_CLOSE_TO_EXPIRY


# --- the fallback


def _email_comes_back(view: NoticeView) -> Iterator[Decision]:
    """An email put aside goes after all, once the text has ended without success in time."""
    if view.email.state is _S.STANDBY and view.sms.state in ENDED_BADLY:
        yield Decision(Channel.EMAIL, _S.QUEUED, _R.TEXT_ENDED_IN_TIME)


def _email_stands_back(view: NoticeView) -> Iterator[Decision]:
    """An unsent email makes way at the fallback time, and for good while the text is out.

    The second half also catches an email whose unknown attempt turns out not to have been
    sent after the fallback was queued: that must not lead to another start.
    """
    if view.email.state not in UNSENT:
        return
    text_is_out = view.sms.state in UNSENT or view.sms.state in GONE_OUT
    if text_is_out or (_is_due(view) and _text_can_go(view)):
        yield Decision(Channel.EMAIL, _S.STANDBY, _R.FALLBACK_GOES_FIRST)


def _text_stands_back(view: NoticeView, *, at_intent: bool) -> Iterator[Decision]:
    """A text that never started is not needed while the email is known to have arrived."""
    if not view.email.has_arrived:
        return
    waits = view.sms.state is _S.QUEUED or (at_intent and view.sms.state is _S.CLAIMED)
    if not view.takes_bounces and view.email.state is _S.ACCEPTED:
        if view.sms.state is _S.STANDBY or (waits and not view.sms.ever_attempted):
            yield Decision(Channel.SMS, _S.SUPPRESSED, _R.PRIMARY_ACCEPTED_FINAL)
    elif waits and not view.sms.ever_attempted:
        yield Decision(Channel.SMS, _S.STANDBY, _R.PRIMARY_DELIVERED)


def _text_goes(view: NoticeView) -> Iterator[Step]:
    if not _text_can_go(view):
        return
    if reason := _reason_at_once(view.email.state):
        yield Decision(Channel.SMS, _S.QUEUED, reason)
    elif _is_due(view):
        yield from _at_fallback_time(view)


def _text_can_go(view: NoticeView) -> bool:
    """On standby, not halted, in time, and no text ever started for this notice (P6)."""
    text = view.sms
    held_back = text.halted or text.ever_attempted or view.now >= text.stop_at
    return text.state is _S.STANDBY and not held_back


def _is_due(view: NoticeView) -> bool:
    return view.fallback_at is not None and view.now >= view.fallback_at


def _reason_at_once(email: DeliveryState) -> Reason | None:
    return {
        _S.FAILED: _R.FALLBACK_EMAIL_FAILED,
        _S.SUPPRESSED: _R.FALLBACK_EMAIL_SUPPRESSED,
        _S.EXPIRED: _R.FALLBACK_EMAIL_EXPIRED,
    }.get(email)


def _at_fallback_time(view: NoticeView) -> Iterator[Step]:
    email = view.email
    match email.state:
        case _S.STANDBY:
            yield Decision(Channel.SMS, _S.QUEUED, _R.FALLBACK_EMAIL_NOT_SENT)
        case _S.UNKNOWN:
            yield from _send_or_hold(view, view.on_unknown, _R.FALLBACK_EMAIL_UNKNOWN)
        case _S.ATTEMPTED if email.call_deadline and view.now >= email.call_deadline:
            yield from _send_or_hold(view, view.on_unknown, _R.FALLBACK_EMAIL_UNKNOWN)
        case _S.ACCEPTED if not email.acceptance_is_final:
            yield from _send_or_hold(view, view.on_unconfirmed, _R.FALLBACK_EMAIL_UNCONFIRMED)
        case _:
            return


def _send_or_hold(view: NoticeView, choice: SendOrHold, reason: Reason) -> Iterator[Step]:
    """A hold is noted once; the text stays in reserve, for a bounce may still call for it."""
    if choice == "send":
        yield Decision(Channel.SMS, _S.QUEUED, reason)
    elif not view.hold_noted:
        yield Note(Channel.SMS, _R.FALLBACK_HELD)


def _avoidable(view: NoticeView) -> Iterator[Note]:
    """The email had arrived before the text was queued: noted once, after expiry too."""
    if view.avoidable_noted or view.mode is not PolicyMode.EMAIL_THEN_SMS:
        return
    if view.email.state is _S.FAILED:
        return
    arrived, queued = view.email_arrived_at, view.sms_queued_at
    if arrived is not None and queued is not None and arrived < queued:
        yield Note(Channel.SMS, _R.FALLBACK_WAS_AVOIDABLE)
