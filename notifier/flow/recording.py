"""Writes what a call came to, as a fact about its attempt.

Whoever made the call keeps its outcome until it is written: an outcome that is lost turns a
known end into an unknown one. While one waits, the process claims nothing new.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import psycopg

from notifier.domain.answers import Asked, Ruling, rule, why_unknown
from notifier.domain.backoff import next_retry_at
from notifier.domain.outcome import Accepted, NotAccepted, Outcome, ProviderPause, Refused, Unknown
from notifier.domain.states import Channel, DeliveryState
from notifier.flow.desk import Desk
from notifier.flow.put_back import randomness
from notifier.flow.receipts import apply_waiting
from notifier.store.database import Database, PooledConnection, StoreUnavailable
from notifier.store.ledger import pauses
from notifier.store.ledger.book import Book, Origin
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.held_rows import HeldAttempt

log = logging.getLogger(__name__)

STORE_TROUBLE: Final = (StoreUnavailable, psycopg.Error)
WAITS_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0)

Count = Callable[[Channel, str, Outcome], None]


class Recorder:
    """Records outcomes, for as long as it takes; shared by the threads of a process."""

    def __init__(
        self,
        *,
        database: Database,
        desk: Desk,
        reports_deliveries: Mapping[Channel, bool],
        count: Count,
        give_up: threading.Event,
    ) -> None:
        self._database = database
        self._desk = desk
        self._reports = reports_deliveries
        self._count = count
        self._give_up = give_up
        self._waiting = 0
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """Outcomes that could not be written yet."""
        return self._waiting

    def record(self, claim: Claim, reference: str, outcome: Outcome) -> None:
        """Write `outcome` for the attempt with `reference`, trying until the store takes it.

        An attempt that is not there was never committed: there is nothing to record. After
        `give_up` (the process must end) the attempt is left to its lease, which makes it
        unknown.
        """
        with closing(self._waits()) as waits:
            while True:
                try:
                    self._write(claim, reference, outcome)
                except STORE_TROUBLE:
                    if self._give_up.wait(next(waits)):
                        return
                else:
                    return

    def _waits(self) -> Generator[float]:
        """Growing waits; from the first one on, an outcome counts as waiting."""
        self._add(1)
        try:
            yield from WAITS_S
            while True:
                yield WAITS_S[-1]
        finally:
            self._add(-1)

    def _add(self, number: int) -> None:
        with self._lock:
            self._waiting += number

    def _write(self, claim: Claim, reference: str, outcome: Outcome) -> None:
        channel = Channel(claim.channel)
        with (
            self._database.connection() as connection,
            self._desk.open_on(connection, claim.notice_id) as book,
        ):
            attempt = _attempt(book, reference)
            if attempt is None:
                return
            provider = attempt.provider
            if claim.repeats and attempt.replay_started_at is None:
                return  # the replay was never committed, so there is nothing to end
            self._write_answer(book, claim, attempt, outcome)
            known = _attempt(book, reference)
            if known and self._reports[channel]:
                apply_waiting(book, connection, known)
            if isinstance(outcome, NotAccepted) and outcome.pause:
                usual_s = self._desk.policy_of(book).provider_pause_s
                _pause(connection, provider, outcome.pause, usual_s, claim.turn_until)
            tried = isinstance(outcome, Accepted | Refused) and claim.turn_until
            if tried:
                pauses.end(connection, provider=provider, turn_until=tried)
        if tried:
            self._desk.wake()
        self._count(channel, provider, outcome)

    def _write_answer(
        self, book: Book, claim: Claim, attempt: HeldAttempt, outcome: Outcome
    ) -> None:
        channel = Channel(claim.channel)
        delivery, is_replay = book.deliveries[channel], claim.repeats is not None
        retry_at = self._retry_at(book, channel, attempt, outcome)
        ruling = rule(
            Asked(
                state=delivery.state,
                attempt_is_open=attempt.resolved_at is None,
                closed=book.now >= delivery.expires_at,
                canceled=book.notice.canceled_at is not None,
                retry_at=retry_at,
                replayed=attempt.replay_started_at is not None,
                is_replay=is_replay,
                was=why_unknown(attempt.reason),
            ),
            outcome,
        )
        book.resolve(
            attempt,
            resolved=attempt.resolved_at is None and _ends(attempt, outcome),
            **_attempt_columns(book.now, attempt, outcome, is_replay=is_replay),
        )
        origin = _origin(attempt, outcome)
        if ruling.to_state is None:
            book.note(channel, ruling.reason, origin=origin, detail=ruling.detail)
            return
        columns = self._delivery_columns(book, channel, ruling, retry_at)
        if columns.get("final_acceptance"):
            # The notice's state rests on it, and must be told by the trail alone.
            origin = replace(origin, evidence={**(origin.evidence or {}), "final": True})
        book.move(
            channel,
            ruling.to_state,
            ruling.reason,
            origin=origin,
            detail=ruling.detail,
            **columns,
        )

    def _retry_at(
        self, book: Book, channel: Channel, attempt: HeldAttempt, outcome: Outcome
    ) -> datetime | None:
        pause = outcome.pause if isinstance(outcome, NotAccepted) else None
        return next_retry_at(
            self._desk.policy_of(book),
            failures=attempt.number,
            now=book.now,
            stop_at=book.deliveries[channel].stop_at,
            rand=randomness,
            asked_wait_s=(pause.seconds or 0.0) if pause else 0.0,
        )

    def _delivery_columns(
        self, book: Book, channel: Channel, ruling: Ruling, retry_at: datetime | None
    ) -> dict[str, Any]:
        match ruling.to_state:
            case DeliveryState.ACCEPTED:
                policy = self._desk.policy_of(book)
                final = policy.acceptance_is_final(reports_deliveries=self._reports[channel])
                arrived = {"arrived_at": book.now} if final else {}
                return {"final_acceptance": final, "left_at": book.now, **arrived}
            case DeliveryState.QUEUED:
                return {"due_at": retry_at, "may_have_left": False}
            case DeliveryState.FAILED | DeliveryState.CANCELED:
                return {"may_have_left": False}
            case _:
                return {}


def _pause(
    connection: PooledConnection,
    provider: str,
    pause: ProviderPause,
    usual_s: float,
    turn_until: datetime | None,
) -> None:
    """In the transaction of the answer, so that neither is told without the other."""
    log.warning("provider %s paused: %s", provider, pause.detail)
    pauses.pause(
        connection,
        provider=provider,
        detail=pause.detail,
        seconds=usual_s if pause.seconds is None else pause.seconds,
        turn_until=turn_until,
    )


def _attempt(book: Book, reference: str) -> HeldAttempt | None:
    return next((held for held in book.attempts if held.reference == reference), None)


def _ends(attempt: HeldAttempt, outcome: Outcome) -> bool:
    """Whether an answer ends the attempt: with a replay under the same key only a yes does."""
    if attempt.replay_started_at is not None:
        return isinstance(outcome, Accepted)
    return not isinstance(outcome, Unknown)


def _attempt_columns(
    now: datetime, attempt: HeldAttempt, outcome: Outcome, *, is_replay: bool
) -> dict[str, Any]:
    """An answer never overwrites what is known: a receipt may have resolved the attempt."""
    message_id = outcome.provider_message_id if isinstance(outcome, Accepted) else None
    known = {"provider_message_id": message_id} if message_id else {}
    ended = {"replay_ended_at": now} if is_replay else {"call_ended": True}
    if attempt.resolved_at is not None and attempt.outcome is not None:
        return {**ended, **known}
    if attempt.replay_started_at is not None and not isinstance(outcome, Accepted):
        return ended
    columns = {
        **ended,
        "finished_at": now,
        "outcome": outcome.kind,
        "provider_code": outcome.provider_code,
        **known,
    }
    match outcome:
        case Unknown(reason=reason):
            return {**columns, "reason": reason}
        case Refused(detail=detail) | NotAccepted(detail=detail):
            return {**columns, "reason": detail, "detail": detail}
        case Accepted():
            return columns


def _origin(attempt: HeldAttempt, outcome: Outcome) -> Origin:
    """The provider speaks through every outcome but an unknown one."""
    message_id = outcome.provider_message_id if isinstance(outcome, Accepted) else None
    return Origin(
        "worker" if isinstance(outcome, Unknown) else "provider",
        attempt=attempt.number,
        provider=attempt.provider,
        provider_ref=message_id or attempt.reference,
        evidence={"code": outcome.provider_code} if outcome.provider_code else None,
    )
