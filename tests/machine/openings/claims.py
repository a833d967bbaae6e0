"""Retries, receipts for what was thought unsent, and claims that end before their intent."""

from __future__ import annotations

from tests.machine.model.facts import Attempt
from tests.machine.openings.words import (
    HOLDING,
    NOT_ACCEPTED,
    PAUSED,
    REPLAYING,
    REPORTING,
    STATUSES,
    TIMEOUT,
    WHYS,
    finish,
    finish_late,
    new,
    opening,
    prepare,
    send,
    start,
    to,
    to_fallback,
)
from tests.machine.pair import Pair


def _not_accepted(pair: Pair, salt: int) -> Attempt:
    new(pair, salt)
    return send(pair, NOT_ACCEPTED + salt % 2)


@opening(REPORTING, HOLDING, REPLAYING)
def waiting_to_retry(pair: Pair, salt: int) -> None:
    """A receipt for what was thought unsent; the next attempt has not begun."""
    pair.tell(_not_accepted(pair, salt), STATUSES[salt % 3], "reference")


@opening(REPORTING, HOLDING, REPLAYING)
def about_to_retry(pair: Pair, salt: int) -> None:
    attempt = _not_accepted(pair, salt)
    to(pair, pair.notices[0].email.due_at)
    pair.claim("email")
    pair.tell(attempt, STATUSES[salt % 3], "reference")


@opening(REPORTING, HOLDING, REPLAYING)
def told_of_the_attempt_before(pair: Pair, salt: int) -> None:
    """The second attempt is out when a receipt comes for the first."""
    attempt = _not_accepted(pair, salt)
    to(pair, pair.notices[0].email.due_at)
    worker = start(pair)
    if salt % 2:
        finish(pair, worker, TIMEOUT)
    pair.tell(attempt, STATUSES[salt // 2 % 3], "reference")
    if salt // 6 % 2:
        pair.halt("channel:email")


@opening(REPORTING, HOLDING, REPLAYING)
def put_aside_before_its_retry(pair: Pair, salt: int) -> None:
    attempt = _not_accepted(pair, salt)
    to_fallback(pair, pair.notices[0])
    pair.tell(attempt, STATUSES[salt % 3], "reference")


@opening()
def paused(pair: Pair, salt: int) -> None:
    new(pair, salt)
    other = new(pair, salt, account=1)
    worker = prepare(pair)
    send(pair, PAUSED + salt % 2)
    pair.intend(worker)
    to(pair, other.email.due_at, 61)


@opening()
def no_time_for_another(pair: Pair, salt: int) -> None:
    notice = pair.admit(150, region="GB", sms_consent=None)
    to(pair, notice.email.stop_at, -20)
    worker = start(pair)
    if salt % 2:
        to(pair, notice.email.stop_at, 3)
        pair.sweep("rescue")
        finish_late(pair, worker, NOT_ACCEPTED)
    else:
        finish(pair, worker, NOT_ACCEPTED)


@opening()
def faults_of_ours(pair: Pair, salt: int) -> None:
    new(pair, salt)
    [worker] = pair.claim("email")
    if salt % 2:
        pair.fault(worker)
    else:
        pair.link(worker)
        pair.render(worker, fails=True)


@opening()
def handed_back(pair: Pair, salt: int) -> None:
    new(pair, salt)
    [worker] = pair.claim("email")
    match salt % 4:
        case 0:
            pair.shut_down(worker)
        case 1:
            pair.link(worker, "unavailable")
        case 2:
            to(pair, pair.now, 33)
            pair.sweep("rescue")
        case _:
            pair.link(worker)
            pair.render(worker)
            pair.halt(("all", "channel:email", "template:password-reset@1")[salt // 4 % 3])
            pair.intend(worker)


@opening()
def claimed_too_long(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    assert notice.fallback_at is not None
    bound = notice.email.stop_at if salt % 3 else notice.fallback_at
    if salt % 3:
        pair.halt("channel:sms")
    to(pair, bound, -2)
    worker = prepare(pair)
    to(pair, notice.expires_at if salt % 3 == 2 else bound, 1)
    pair.intend(worker)


@opening()
def claimed_until_expiry(pair: Pair, salt: int) -> None:
    notice = new(pair, salt, sms_consent=None)
    to(pair, notice.email.stop_at, -2)
    worker = prepare(pair)
    to(pair, notice.expires_at if salt % 2 else notice.email.stop_at, 1)
    pair.intend(worker)


@opening()
def gone(pair: Pair, salt: int) -> None:
    new(pair, salt)
    [worker] = pair.claim("email")
    pair.link(worker, f"gone-{(*WHYS[:3], 'expired')[salt % 4]}")


@opening()
def canceled(pair: Pair, salt: int) -> None:
    notice = new(pair, salt)
    match salt // 4 % 3:
        case 0:
            pair.cancel(notice, WHYS[salt % 4])
        case 1:
            pair.claim("email")
            pair.cancel(notice, WHYS[salt % 4])
        case _:
            worker = start(pair)
            pair.cancel(notice, WHYS[salt % 4])
            finish(pair, worker, NOT_ACCEPTED)


@opening()
def shortened(pair: Pair, salt: int) -> None:
    new(pair, salt)
    [worker] = pair.claim("email")
    pair.link(worker, cut=60.0 + salt * 7, moved=bool(salt % 2))
    pair.render(worker)
    pair.intend(worker)


@opening()
def untouched_until(pair: Pair, salt: int) -> None:
    """Nobody swept: the first look is at a boundary."""
    notice = new(pair, salt)
    bounds = (notice.sms.stop_at, notice.email.stop_at, notice.expires_at)
    to(pair, bounds[salt % 3], salt % 2)
    pair.sweep("expiry")


@opening()
def two_channels(pair: Pair, salt: int) -> None:
    new(pair, salt, mode="parallel")
    send(pair, salt, "sms")
    send(pair, salt + TIMEOUT)
