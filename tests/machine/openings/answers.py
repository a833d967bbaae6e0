"""Attempts without an answer of their own: receipts, looks, late answers, lost workers."""

from __future__ import annotations

from tests.machine import looks
from tests.machine.example import Worker
from tests.machine.openings.words import (
    ACCEPTED,
    HOLDING,
    NOT_ACCEPTED,
    PATIENT,
    REFUSED,
    REPLAYING,
    REPORTING,
    STATUSES,
    TIMEOUT,
    WHYS,
    finish,
    finish_late,
    new,
    opening,
    send,
    start,
    to,
)
from tests.machine.pair import Pair


@opening()
def told_before_answered(pair: Pair, salt: int) -> None:
    new(pair, salt)
    worker = start(pair)
    pair.tell(worker.notice.email.attempts[-1], STATUSES[salt % 3], "reference")
    finish(pair, worker, salt // 3)


@opening(REPORTING, HOLDING, REPLAYING)
def told_by_id_alone(pair: Pair, salt: int) -> None:
    """Nobody knows the id yet: the receipt waits until an answer or another receipt brings it."""
    new(pair, salt)
    worker = start(pair)
    attempt = worker.notice.email.attempts[-1]
    pair.tell(attempt, STATUSES[salt % 3], "id")
    if salt % 2:
        pair.tell(attempt, "delayed", "both")
    finish(pair, worker, ACCEPTED)
    pair.sweep("receipts")


def _lost(pair: Pair, salt: int) -> Worker:
    """Its lease ran out during the call, and the attempt was taken from it."""
    new(pair, salt)
    worker = start(pair)
    to(pair, worker.notice.email.attempts[-1].deadline, 3)
    pair.sweep("rescue")
    return worker


@opening()
def lost_and_late(pair: Pair, salt: int) -> None:
    answers = (ACCEPTED, NOT_ACCEPTED, REFUSED, TIMEOUT)
    finish_late(pair, _lost(pair, salt), answers[salt % 4])


@opening()
def lost_and_told(pair: Pair, salt: int) -> None:
    worker = _lost(pair, salt)
    pair.tell(worker.notice.email.attempts[-1], STATUSES[salt % 3], "reference")


@opening()
def lost_and_canceled(pair: Pair, salt: int) -> None:
    worker = _lost(pair, salt)
    pair.cancel(worker.notice, WHYS[salt % 4])
    finish_late(pair, worker, NOT_ACCEPTED)


@opening()
def lost_and_looked_for(pair: Pair, salt: int) -> None:
    """Nobody said that the call had ended, so its absence proves nothing."""
    _lost(pair, salt)
    looks.settle_an_absence(pair, 2 + salt % 5)


@opening(REPORTING, HOLDING)
def looked_up(pair: Pair, salt: int) -> None:
    new(pair, salt)
    send(pair, TIMEOUT + salt % 4)
    looks.to_next_look(pair, "unknown")
    looks.reconcile(pair, STATUSES[salt % 3])


@opening(REPORTING, HOLDING)
def looked_up_in_vain(pair: Pair, salt: int) -> None:
    notice = new(pair, salt, sms_consent=None)
    if salt % 3 == 1:
        to(pair, notice.email.stop_at, -10 - pair.ground.kind.terms.settle)
    send(pair, TIMEOUT)
    if salt % 3 == 2:
        pair.cancel(notice, WHYS[salt % 4])
    looks.settle_an_absence(pair, 6)


@opening(REPORTING, HOLDING, PATIENT)
def polled(pair: Pair, salt: int) -> None:
    new(pair, salt)
    send(pair, ACCEPTED)
    looks.to_next_look(pair, "accepted")
    looks.poll(pair, (*STATUSES, "delayed", "nothing")[salt % 5])


@opening()
def text_unknown(pair: Pair, salt: int) -> None:
    new(pair, salt, mode="sms_only", sms=("given", "absent")[salt % 2])
    if salt % 4 == 3:
        new(pair, salt, mode="sms_only")
        start(pair, "sms")
    send(pair, TIMEOUT, "sms")
    looks.to_next_look(pair, "unknown")
    looks.reconcile(pair, (*STATUSES, "nothing")[salt % 4])


@opening()
def text_found_going_on(pair: Pair, salt: int) -> None:
    """What tells nothing of the outcome may still name the message: then its id decides."""
    new(pair, salt, mode="sms_only")
    if salt % 4 > 1:
        new(pair, salt, mode="sms_only")
        start(pair, "sms")
    attempt = send(pair, TIMEOUT, "sms")
    if salt % 2:
        pair.tell(attempt, ("delayed", "unmapped")[salt // 4 % 2], "both")
    for says in ("delayed", "unmapped", "nothing", STATUSES[salt % 3]):
        if looks.to_next_look(pair, "unknown"):
            looks.reconcile(pair, says)


@opening()
def after_expiry(pair: Pair, salt: int) -> None:
    """Late in every way: the answer, the receipt, the sweep."""
    notice = new(pair, salt)
    worker = start(pair)
    if salt % 2:
        finish(pair, worker, TIMEOUT)
    to(pair, notice.expires_at, salt)
    if salt % 3:
        pair.tell(notice.email.attempts[-1], STATUSES[salt % 3], "reference")
    if not salt % 2:
        finish_late(pair, worker, salt // 2)
