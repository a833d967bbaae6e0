"""What an opening is, and the words in which they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from notifier.domain.outcome import (
    Accepted,
    NotAccepted,
    Outcome,
    ProviderPause,
    Refused,
    Unknown,
    UnknownReason,
)
from notifier.domain.reasons import Detail, Reason
from tests.machine.example import Worker
from tests.machine.model.facts import Attempt, Notice
from tests.machine.pair import Pair, message_id

WHYS = ("used", "superseded", "revoked", "operator")
AMBIGUOUS: tuple[UnknownReason, ...] = (
    Reason.TIMEOUT,
    Reason.CONNECTION_LOST,
    Reason.GATEWAY_ERROR,
    Reason.UNREADABLE_ANSWER,
)
STATUSES = ("accepted", "delivered", "failed")
REPORTING, HOLDING, RELAY, BOUNCES, UNCONFIRMED, REPLAYING, PATIENT = range(7)
ANY = tuple(range(7))
SENDING = (REPORTING, RELAY, BOUNCES, UNCONFIRMED, REPLAYING)

Act = Callable[[Pair, int], None]


@dataclass(frozen=True)
class Opening:
    """`kinds`: the surroundings in which it leads where it should."""

    act: Act
    kinds: tuple[int, ...]


OPENINGS: dict[str, Opening] = {}


def opening(*kinds: int) -> Callable[[Act], Act]:
    def kept(act: Act) -> Act:
        OPENINGS[act.__name__] = Opening(act, kinds or ANY)
        return act

    return kept


# --- words


def outcome(number: int, reference: str = "", *, email: bool = True) -> Outcome:
    """What a call came to, by number; the provider's id where it gives one."""
    given = message_id(reference) if reference and number % 2 == 0 else None
    outcomes: tuple[Outcome, ...] = (
        Accepted(given),
        Accepted(given),
        NotAccepted(Detail.PROVIDER_ERROR),
        NotAccepted(Detail.RATE_LIMITED, pause=ProviderPause(Detail.RATE_LIMITED, 20.0)),
        NotAccepted(Detail.AUTH_ERROR, pause=ProviderPause(Detail.AUTH_ERROR)),
        Refused(Detail.INVALID_DESTINATION),
        *(Unknown(reason) for reason in AMBIGUOUS),
    )
    return outcomes[number % len(outcomes)]


ACCEPTED, NOT_ACCEPTED, PAUSED, REFUSED, TIMEOUT = 0, 2, 3, 5, 6


def prepare(pair: Pair, channel: str = "email") -> Worker:
    [worker] = pair.claim(channel)
    pair.link(worker)
    pair.render(worker)
    return worker


def start(pair: Pair, channel: str = "email") -> Worker:
    worker = prepare(pair, channel)
    assert pair.intend(worker)
    return worker


def finish(pair: Pair, worker: Worker, number: int) -> None:
    assert worker.started is not None
    reports = pair.ground.kind.reports[worker.channel]
    pair.call(worker, outcome(number, worker.started.reference if reports else ""))
    pair.record(worker)


def send(pair: Pair, number: int, channel: str = "email") -> Attempt:
    worker = start(pair, channel)
    finish(pair, worker, number)
    return worker.notice.on(channel).attempts[-1]


def to(pair: Pair, at: Any, seconds: float = 0) -> None:
    pair.ground.go_to(at + timedelta(seconds=seconds))


def new(pair: Pair, salt: int = 0, **changes: Any) -> Notice:
    changes.setdefault("region", "GB")
    return pair.admit(600 + salt % 3 * 100, **changes)


def to_fallback(pair: Pair, notice: Notice) -> None:
    assert notice.fallback_at is not None
    to(pair, notice.fallback_at)
    pair.sweep("fallback")


def fallback_queued(pair: Pair, salt: int) -> Notice:
    """The email is unknown, and a text was queued in its place."""
    notice = new(pair, salt)
    send(pair, TIMEOUT)
    to_fallback(pair, notice)
    return notice


def put_aside(pair: Pair, salt: int) -> Notice:
    """The email never started, and a text was queued in its place."""
    notice = new(pair, salt)
    to_fallback(pair, notice)
    return notice


def finish_late(pair: Pair, worker: Worker, number: int) -> None:
    """The call was made in time; its worker froze before it could write what it came to."""
    now, worker.outcome = pair.now, None
    assert worker.started is not None
    reports = pair.ground.kind.reports[worker.channel]
    worker.outcome = outcome(number, worker.started.reference if reports else "")
    assert now >= (worker.started_at or now)
    pair.record(worker)
