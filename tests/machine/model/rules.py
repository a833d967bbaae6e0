"""What follows from what is true: endings by the clock, and whether a text goes (section 4).

Level-triggered (11.11): asked again until nothing changes, in the transaction of every fact.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tests.machine.model.facts import ENDED, MAY_BE_OUT, UNSENT, Notice

Halted = Callable[[Notice, str], bool]


def settle(notice: Notice, now: datetime, halted: Halted, *, at_intent: bool = False) -> None:
    """Write every step that follows; `at_intent`: asked by the holder of a claimed text."""
    for _ in range(20):
        if not _step(notice, now, halted, at_intent=at_intent):
            return
    raise AssertionError("the rules do not come to rest")


def _step(notice: Notice, now: datetime, halted: Halted, *, at_intent: bool) -> bool:
    if _ends(notice, now):
        return True
    deciding = notice.mode == "email_then_sms" and not notice.canceled
    if deciding and now < notice.expires_at:
        can_go = _text_can_go(notice, now, halted)
        if (
            _email_comes_back(notice, now)
            or _email_makes_way(notice, now, can_go=can_go)
            or _text_stands_back(notice, at_intent=at_intent)
            or (can_go and _text_goes(notice, now))
        ):
            return True
    return _avoidable(notice)


# --- endings, sections 3.1 and 11.1


def _ends(notice: Notice, now: datetime) -> bool:
    late = "window_closed" if now >= notice.expires_at else "too_close_to_expiry"
    email, sms = notice.both
    if email.state == "standby" and now >= email.stop_at:
        going = sms.state in MAY_BE_OUT or (sms.state in UNSENT and now < sms.stop_at)
        if going:
            notice.move(email, "suppressed", "superseded_by_fallback")
        else:
            notice.move(email, "expired", late)
        return True
    if sms.state == "standby" and now >= sms.stop_at:
        _reserve_ends(notice, late)
        return True
    for each in notice.both:
        if each.state in UNSENT and now >= min(each.stop_at, notice.expires_at):
            notice.move(each, "expired", late)
            return True
        if now >= notice.expires_at and each.state == "unknown":
            notice.move(each, "expired", "unknown_at_expiry")
            return True
        if now >= notice.expires_at and each.state == "accepted" and not each.final:
            notice.move(each, "expired", "unconfirmed_at_expiry")
            return True
    return False


def _reserve_ends(notice: Notice, late: str) -> None:
    email, sms = notice.both
    if email.state == "delivered":
        notice.move(sms, "suppressed", "primary_delivered")
    elif email.arrived:
        notice.move(sms, "suppressed", "primary_accepted_final")
    elif notice.hold_noted and email.state in MAY_BE_OUT:
        notice.move(sms, "suppressed", "fallback_held_by_policy")
    else:
        notice.move(sms, "expired", late)


# --- the fallback, section 4


def _text_can_go(notice: Notice, now: datetime, halted: Halted) -> bool:
    """Only on standby, not halted, before its stop time; never twice (P6)."""
    sms = notice.sms
    in_time = sms.state == "standby" and now < sms.stop_at
    return in_time and not sms.attempts and not halted(notice, "sms")


def _is_due(notice: Notice, now: datetime) -> bool:
    return notice.fallback_at is not None and now >= notice.fallback_at


def _email_comes_back(notice: Notice, now: datetime) -> bool:
    if notice.email.state != "standby" or notice.sms.state not in ENDED:
        return False
    notice.move(notice.email, "queued", "text_ended_in_time")
    notice.email.due_at = notice.email.chosen_at = now
    return True


def _email_makes_way(notice: Notice, now: datetime, *, can_go: bool) -> bool:
    if notice.email.state not in UNSENT:
        return False
    taken = notice.sms.state in UNSENT | MAY_BE_OUT
    if not taken and not (can_go and _is_due(notice, now)):
        return False
    notice.move(notice.email, "standby", "fallback_goes_first")
    return True


def _text_stands_back(notice: Notice, *, at_intent: bool) -> bool:
    """11.5: a text that never started is not needed while the email is known to have arrived."""
    email, sms = notice.both
    if not email.arrived or sms.attempts:
        return False
    waits = sms.state == "queued" or (sms.state == "claimed" and at_intent)
    for_good = email.state == "accepted" and not notice.terms.takes_bounces
    if for_good and (waits or sms.state == "standby"):
        notice.move(sms, "suppressed", "primary_accepted_final")
        return True
    if waits and not for_good:
        notice.move(sms, "standby", "primary_delivered")
        return True
    return False


def _text_goes(notice: Notice, now: datetime) -> bool:
    email = notice.email
    if email.state in {"failed", "suppressed", "expired"}:
        return _send(notice, now, f"fallback_email_{email.state}")
    if not _is_due(notice, now):
        return False
    attempt = email.open_attempt
    overdue = email.state == "attempted" and attempt is not None and now >= attempt.deadline
    if email.state == "standby":
        return _send(notice, now, "fallback_email_not_sent")
    if email.state == "unknown" or overdue:
        return _send_or_hold(notice, now, notice.terms.on_unknown, "fallback_email_unknown")
    if email.state == "accepted" and not email.final:
        choice = notice.terms.on_unconfirmed
        return _send_or_hold(notice, now, choice, "fallback_email_unconfirmed")
    return False


def _send_or_hold(notice: Notice, now: datetime, choice: str, reason: str) -> bool:
    if choice == "send":
        return _send(notice, now, reason)
    if notice.hold_noted:
        return False
    notice.note(notice.sms, "fallback_held")
    notice.hold_noted = True
    return True


def _send(notice: Notice, now: datetime, reason: str) -> bool:
    notice.move(notice.sms, "queued", reason)
    notice.sms.due_at = notice.sms.chosen_at = now
    return True


def _avoidable(notice: Notice) -> bool:
    """The email had arrived before the text was queued; noted once."""
    arrived, chosen = notice.email.arrived_at, notice.sms.chosen_at
    counts = notice.mode == "email_then_sms" and notice.email.state != "failed"
    if not counts or notice.avoidable_noted or arrived is None or chosen is None:
        return False
    if arrived >= chosen:
        return False
    notice.note(notice.sms, "fallback_was_avoidable")
    notice.avoidable_noted = True
    return True
