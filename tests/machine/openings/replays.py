"""The same call again under its own key."""

from __future__ import annotations

from tests.machine import looks
from tests.machine.example import Worker
from tests.machine.openings.words import (
    ACCEPTED,
    NOT_ACCEPTED,
    PATIENT,
    REFUSED,
    REPLAYING,
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
    to_fallback,
)
from tests.machine.pair import Pair


def marked(pair: Pair, salt: int) -> Worker | None:
    """A replay was authorised, and somebody has claimed it."""
    new(pair, salt, email=("given", "absent")[salt % 2])
    send(pair, TIMEOUT + salt % 4)
    looks.to_next_look(pair, "unknown")
    looks.reconcile(pair, "nothing")
    workers = pair.claim("email", 2)
    return workers[0] if workers else None


@opening(REPLAYING, PATIENT)
def replay_marked(pair: Pair, salt: int) -> None:
    marked(pair, salt)


@opening(REPLAYING, PATIENT)
def replay_started(pair: Pair, salt: int) -> None:
    worker = marked(pair, salt)
    assert worker is not None
    pair.link(worker)
    pair.render(worker)
    assert pair.intend(worker)
    attempt = worker.notice.email.attempts[-1]
    match salt % 3:
        case 0:
            finish(pair, worker, salt // 3)
        case 1:
            pair.tell(attempt, STATUSES[salt // 3 % 3], "reference")
            finish(pair, worker, salt // 3)
        case _:
            to(pair, attempt.deadline, 3)
            pair.sweep("rescue")


@opening(REPLAYING, PATIENT)
def replay_beside_a_late_answer(pair: Pair, salt: int) -> None:
    """The first call's worker was lost; it wakes up after the replay began."""
    notice = new(pair, salt)
    first = start(pair)
    to(pair, notice.email.attempts[-1].deadline, 3)
    pair.sweep("rescue")
    looks.to_next_look(pair, "unknown")
    looks.reconcile(pair, "nothing")
    again = pair.claim("email")
    if again:
        pair.link(again[0])
        pair.render(again[0])
        pair.intend(again[0])
    finish_late(pair, first, (ACCEPTED, NOT_ACCEPTED, REFUSED, TIMEOUT)[salt % 4])


@opening(REPLAYING)
def replay_forbidden(pair: Pair, salt: int) -> None:
    """Claimed to be repeated; then one of the guards of its start no longer agrees."""
    worker = marked(pair, salt)
    assert worker is not None
    notice = worker.notice
    pair.link(worker)
    pair.ground.digest = "01" if salt % 7 == 0 else "00"
    pair.render(worker)
    pair.ground.digest = "00"
    match salt % 7:
        case 1:
            to_fallback(pair, notice)
        case 2:
            pair.cancel(notice, WHYS[salt % 4])
        case 3:
            pair.halt("channel:email")
        case 4:
            pair.tell(notice.email.attempts[-1], STATUSES[salt % 3], "reference")
        case 5:
            pair.halt("channel:sms")
            to(pair, notice.email.stop_at)
        case 6:
            pair.halt("channel:sms")
            to(pair, notice.email.attempts[-1].started_at, pair.ground.kind.terms.key_life / 2)
        case _:
            pass
    assert not pair.intend(worker)
