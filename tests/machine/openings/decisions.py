"""The email's end, and the decision about the text."""

from __future__ import annotations

from tests.machine.openings.words import (
    ACCEPTED,
    BOUNCES,
    HOLDING,
    PATIENT,
    REFUSED,
    RELAY,
    REPORTING,
    SENDING,
    TIMEOUT,
    UNCONFIRMED,
    fallback_queued,
    finish_late,
    new,
    opening,
    prepare,
    put_aside,
    send,
    start,
    to,
    to_fallback,
)
from tests.machine.pair import Pair


@opening()
def refused(pair: Pair, salt: int) -> None:
    new(pair, salt)
    send(pair, REFUSED)


@opening()
def withheld(pair: Pair, salt: int) -> None:
    new(pair, salt)
    [worker] = pair.claim("email")
    pair.link(worker, ("no_destination", "invalid_destination", "not_permitted")[salt % 3])


@opening(HOLDING)
def email_expires_first(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    pair.halt(("channel:sms", "all")[salt % 2])
    to(pair, notice.email.stop_at)
    pair.sweep("expiry")
    pair.release(("channel:sms", "all")[salt % 2])
    pair.sweep("fallback")


@opening()
def email_put_aside(pair: Pair, salt: int) -> None:
    notice = put_aside(pair, salt)
    if salt % 3 == 1:
        send(pair, TIMEOUT, "sms")
        to(pair, notice.email.stop_at)
        pair.sweep("expiry")


@opening()
def text_ends_in_time(pair: Pair, salt: int) -> None:
    put_aside(pair, salt)
    if salt % 2:
        send(pair, REFUSED, "sms")
    else:
        [worker] = pair.claim("sms")
        pair.link(worker, "no_destination")


@opening(*SENDING)
def email_unknown(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    send(pair, TIMEOUT + salt % 4)
    if salt % 2:
        to_fallback(pair, notice)


@opening(REPORTING, HOLDING, UNCONFIRMED)
def email_unconfirmed(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    send(pair, ACCEPTED)
    to_fallback(pair, notice)
    if salt % 3 == 1:
        to(pair, notice.expires_at)
        pair.sweep("expiry")


@opening(HOLDING, PATIENT)
def held(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    send(pair, TIMEOUT if salt % 2 else ACCEPTED)
    to_fallback(pair, notice)
    if salt % 3:
        to(pair, notice.sms.stop_at)
        pair.sweep("expiry")


@opening()
def overdue_call(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    assert notice.fallback_at is not None
    to(pair, notice.fallback_at, -5)
    start(pair)
    to(pair, notice.fallback_at, salt % 3 * 40)
    pair.sweep("fallback")


@opening(REPORTING, HOLDING)
def delivered(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    attempt = send(pair, ACCEPTED)
    pair.tell(attempt, "delivered")
    if salt % 3 == 1:
        pair.tell(attempt, "failed")
    if salt % 3 == 2:
        to(pair, notice.sms.stop_at)
        pair.sweep("expiry")


@opening()
def accepted_as_far_as_known(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    attempt = send(pair, ACCEPTED)
    if salt % 2:
        to(pair, notice.sms.stop_at)
        pair.sweep("expiry")
    else:
        pair.tell(attempt, "failed", "reference")


@opening(*SENDING)
def arrived_after_the_decision(pair: Pair, salt: int) -> None:
    notice = fallback_queued(pair, salt)
    worker = prepare(pair, "sms") if salt % 2 else None
    pair.tell(notice.email.attempts[-1], "delivered", "reference", ago=salt % 5 * 100.0)
    if worker:
        pair.intend(worker)


@opening(RELAY, BOUNCES)
def accepted_after_the_decision(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    worker = start(pair)
    assert notice.fallback_at is not None
    to(pair, notice.fallback_at)
    pair.sweep("rescue")
    text = prepare(pair, "sms") if salt // 2 % 2 else None
    finish_late(pair, worker, ACCEPTED)
    if text:
        pair.intend(text)
