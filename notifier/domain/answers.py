"""What the answer to a call means for its delivery, whoever holds the lease by then.

The answer belongs to its attempt and is a fact: the fence guards starts, not facts. Pure;
`flow/dispatch` writes what this decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import DeliveryState

_S = DeliveryState
_R = Reason

_REASONS: Final = frozenset(Reason)
_UNSENT: Final = frozenset({_S.QUEUED, _S.CLAIMED, _S.STANDBY})


@dataclass(frozen=True, slots=True)
class Asked:
    """What is true of the delivery when the answer is written.

    `attempt_is_open`: this very attempt is still unresolved. `closed`: past expiry by the
    database clock. `retry_at`: when another attempt would be due, None when no time is left
    for one. `canceled`: the notice was canceled meanwhile. `replayed`: the attempt's call was
    begun a second time under its key; `is_replay`: it is that second call which answers, and
    `was` is the reason for which the outcome was unknown before it.
    """

    state: DeliveryState
    attempt_is_open: bool
    closed: bool
    canceled: bool
    retry_at: datetime | None
    replayed: bool = False
    is_replay: bool = False
    was: Reason = Reason.WORKER_LOST


@dataclass(frozen=True, slots=True)
class Ruling:
    """The move to write (None: only the fact), with its reason and the provider's word."""

    to_state: DeliveryState | None
    reason: Reason
    detail: Detail | None = None


def rule(asked: Asked, outcome: Outcome) -> Ruling:
    """Decide what an answer changes; total over every state and outcome."""
    if asked.replayed and not isinstance(outcome, Accepted):
        return _proves_nothing(asked, outcome)
    if asked.state is _S.ATTEMPTED and asked.attempt_is_open:
        return _holder(asked, outcome)
    if asked.state is _S.UNKNOWN and asked.attempt_is_open and not asked.closed:
        return _late(asked, outcome)
    if asked.state in _UNSENT and isinstance(outcome, Accepted) and not asked.closed:
        return Ruling(_S.ACCEPTED, _R.EARLIER_ATTEMPT_FOUND)
    return Ruling(None, _R.LATE_OUTCOME, _detail(outcome))


def why_unknown(reason: str | None) -> Reason:
    """Why an attempt is unknown, by the reason kept with it (None: its worker was lost).

    The reason of an attempt that ended otherwise is the provider's word, a `Detail`: such an
    attempt is not unknown, and the answer to it is the same as for no reason at all.
    """
    return Reason(reason) if reason in _REASONS else Reason.WORKER_LOST


def _holder(asked: Asked, outcome: Outcome) -> Ruling:
    """The call's own answer while its attempt is the open one; after expiry too (11.3)."""
    match outcome:
        case Accepted():
            late = asked.replayed and not asked.is_replay
            return Ruling(_S.ACCEPTED, _R.LATE_ANSWER if late else _R.PROVIDER_ACCEPTED)
        case Refused(detail=detail):
            return Ruling(_S.FAILED, _R.REFUSED, detail)
        case NotAccepted(detail=detail):
            return _again(asked, detail)
        case Unknown(reason=reason):
            return Ruling(_S.UNKNOWN, reason)


def _late(asked: Asked, outcome: Outcome) -> Ruling:
    """The answer comes after a rescue had to call the attempt unknown."""
    match outcome:
        case Accepted():
            return Ruling(_S.ACCEPTED, _R.LATE_ANSWER)
        case Refused(detail=detail):
            return Ruling(_S.FAILED, _R.LATE_ANSWER, detail)
        case NotAccepted(detail=detail):
            return _again(asked, detail)
        case Unknown():
            return Ruling(None, _R.LATE_OUTCOME)


def _proves_nothing(asked: Asked, outcome: NotAccepted | Refused | Unknown) -> Ruling:
    """Of two calls under one key, what one did not bring about the other may have.

    The replay's own end puts the delivery back to unknown, for the reason that it was unknown
    for where the replay was turned away; the first call's late answer leaves it where it is.
    """
    if asked.is_replay and asked.state is _S.ATTEMPTED and asked.attempt_is_open:
        reason = outcome.reason if isinstance(outcome, Unknown) else asked.was
        return Ruling(_S.UNKNOWN, reason, _detail(outcome))
    return Ruling(None, _R.LATE_OUTCOME, _detail(outcome))


def _again(asked: Asked, detail: Detail) -> Ruling:
    """Proven not sent: another attempt where one may still start."""
    if asked.canceled:
        return Ruling(_S.CANCELED, _R.CANCELED_BEFORE_RETRY, detail)
    if asked.retry_at is None:
        return Ruling(_S.FAILED, _R.NOT_ACCEPTED_NO_TIME_LEFT, detail)
    return Ruling(_S.QUEUED, _R.NOT_ACCEPTED, detail)


def _detail(outcome: Outcome) -> Detail | None:
    return outcome.detail if isinstance(outcome, Refused | NotAccepted) else None
