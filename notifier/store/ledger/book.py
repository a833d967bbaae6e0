"""Holds one notice under its locks, and writes what is decided about it.

`held` locks the notice's rows (`held_rows`). Whoever holds the book decides on what it then
shows, moves deliveries through it, and leaves; the writes and the commit go out together.
Every move writes its trail row, so the trail cannot be forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import sql

from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState, is_permitted
from notifier.store import trail
from notifier.store.ledger.held_rows import HeldAttempt, HeldDelivery, HeldNotice, hold
from notifier.store.statement import Statement

Row = dict[str, Any]

PATIENCE: Final = "SELECT set_config('lock_timeout', %s, true)"

APPEND: Final = f"""
WITH clock AS MATERIALIZED (SELECT %(now)s::timestamptz AS now),
    held AS (SELECT * FROM notice WHERE notice_id = %(notice_id)s),
    step AS (
        SELECT %(notice_id)s::uuid AS notice_id, %(channel)s::text AS channel,
               %(attempt)s::integer AS attempt, %(actor)s::text AS actor,
               %(from_state)s::text AS from_state, %(to_state)s::text AS to_state,
               %(reason)s::text AS reason, %(detail)s::text AS detail,
               %(provider)s::text AS provider, %(provider_ref)s::text AS provider_ref,
               %(receipt_id)s::uuid AS receipt_id, %(occurred_at)s::timestamptz AS occurred_at,
               %(evidence)s::jsonb AS evidence),
    {trail.CHAIN}
SELECT 1
"""

_AMEND_DELIVERY: Final = (
    "UPDATE delivery SET {}, changed_at = %(_now)s WHERE notice_id = %(_notice)s "
    "AND channel = %(_channel)s AND state = %(_state)s AND fence = %(_fence)s"
)
_RESOLVE_ATTEMPT: Final = (
    "UPDATE attempt SET {} WHERE notice_id = %(_notice)s AND channel = %(_channel)s "
    "AND number = %(_number)s"
)
_AMEND_NOTICE: Final = "UPDATE notice SET {}, changed_at = %(_now)s WHERE notice_id = %(_notice)s"

_APPEND: Final = Statement(APPEND)


@cache
def _update(template: str, columns: tuple[str, ...]) -> Statement:
    """`template` with these columns assigned; there are as many as the code has calls."""
    assignments = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in columns
    )
    return Statement(template.format(assignments.as_string()))


@dataclass(frozen=True, slots=True)
class Origin:
    """Who or what brought a fact: the trail's actor, the attempt and the provider's words."""

    actor: str
    attempt: int | None = None
    provider: str | None = None
    provider_ref: str | None = None
    receipt_id: UUID | None = None
    occurred_at: datetime | None = None
    evidence: Mapping[str, Any] | None = None


WORKER: Final = Origin("worker")
SERVICE: Final = Origin("service")
OPERATOR: Final = Origin("operator")


@dataclass
class Book:
    """One notice under its locks. Use it inside `held`, from one thread."""

    notice: HeldNotice
    deliveries: dict[Channel, HeldDelivery]
    attempts: list[HeldAttempt]
    now: datetime
    halts: frozenset[str] = frozenset()
    first_states: dict[Channel, DeliveryState] = field(default_factory=dict)
    _statements: list[tuple[Statement, Row]] = field(default_factory=list)
    entries: list[trail.TrailEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first_states = {name: each.state for name, each in self.deliveries.items()}

    def has_moved(self, channel: Channel) -> bool:
        """Whether the delivery stands elsewhere than when the book was opened."""
        return self.deliveries[channel].state != self.first_states[channel]

    def is_halted(self, channel: Channel) -> bool:
        """Whether a halt that stands covers this channel of the notice."""
        notice, delivery = self.notice, self.deliveries[channel]
        scopes = {
            "all",
            f"channel:{channel}",
            f"provider:{delivery.provider}",
            f"template:{notice.template_id}@{notice.template_revision}",
            f"account:{notice.account_id}",
            f"event:{notice.event_id}",
        }
        return not self.halts.isdisjoint(scopes)

    def open_attempt(self, channel: Channel) -> HeldAttempt | None:
        """The one attempt of `channel` whose outcome is not resolved."""
        for attempt in self.attempts:
            if attempt.channel == channel and attempt.resolved_at is None:
                return attempt
        return None

    def move(
        self,
        channel: Channel,
        to: DeliveryState,
        reason: Reason,
        *,
        origin: Origin,
        detail: str | None = None,
        **changes: Any,
    ) -> None:
        """Move a delivery and write its trail row; `changes` are further columns.

        Raises ValueError for a move that the table does not have.
        """
        delivery = self.deliveries[channel]
        if not is_permitted(delivery.state, to, reason):
            message = f"no move from {delivery.state} to {to} for {reason}"
            raise ValueError(message)
        columns = {"state": to, "reason": reason, "detail": detail, **changes}
        if to not in (DeliveryState.CLAIMED, DeliveryState.ATTEMPTED):
            columns |= {"lease_owner": None, "lease_until": None}
        if delivery.replay_due_at is not None:
            columns["replay_due_at"] = None  # what is not unknown any more is not repeated
        self._append(channel, delivery.state, to, reason, detail, origin)
        self.amend(channel, **columns)

    def amend(self, channel: Channel, **columns: Any) -> None:
        """Change columns of a delivery that are no state (a move calls this for its own)."""
        delivery = self.deliveries[channel]
        statement = _update(_AMEND_DELIVERY, tuple(columns))
        guard = {
            "_now": self.now,
            "_notice": self.notice.notice_id,
            "_channel": channel,
            "_state": delivery.state,
            "_fence": delivery.fence,
        }
        self._statements.append((statement, {**columns, **guard}))
        self.deliveries[channel] = replace(delivery, **columns)

    def note(
        self, channel: Channel | None, reason: Reason, *, origin: Origin, detail: str | None = None
    ) -> None:
        """Write a fact that moves nothing."""
        state = self.deliveries[channel].state if channel else None
        self._append(channel, state, state, reason, detail, origin)

    def resolve(self, attempt: HeldAttempt, *, resolved: bool, **columns: Any) -> None:
        """Store what became of an attempt; `resolved` closes it for good."""
        values: Row = {**columns}
        if resolved:
            values["resolved_at"] = self.now
        if not values:
            return
        statement = _update(_RESOLVE_ATTEMPT, tuple(values))
        key = {
            "_notice": self.notice.notice_id,
            "_channel": attempt.channel,
            "_number": attempt.number,
        }
        self._statements.append((statement, {**values, **key}))
        known = {name: values[name] for name in values if hasattr(attempt, name)}
        self.attempts = [
            replace(kept, **known) if kept is attempt else kept for kept in self.attempts
        ]

    def amend_notice(self, **columns: Any) -> None:
        """Change columns of the notice (cancellation, fallback time, a shortened life)."""
        statement = _update(_AMEND_NOTICE, tuple(columns))
        values = {**columns, "_now": self.now, "_notice": self.notice.notice_id}
        self._statements.append((statement, values))
        self.notice = replace(self.notice, **columns)

    def set_state(self, state: NoticeState, basis: str | None) -> None:
        """Store the notice's state where it changed."""
        if (state, basis) != (self.notice.state, self.notice.basis):
            self.amend_notice(state=state, basis=basis)

    def _append(
        self,
        channel: Channel | None,
        start: str | None,
        end: str | None,
        reason: Reason,
        detail: str | None,
        origin: Origin,
    ) -> None:
        evidence = json.dumps(dict(origin.evidence)) if origin.evidence else None
        values = {
            "now": self.now,
            "notice_id": self.notice.notice_id,
            "channel": channel,
            "attempt": origin.attempt,
            "actor": origin.actor,
            "from_state": start,
            "to_state": end,
            "reason": reason,
            "detail": detail,
            "provider": origin.provider,
            "provider_ref": origin.provider_ref,
            "receipt_id": origin.receipt_id,
            "occurred_at": origin.occurred_at,
            "evidence": evidence,
        }
        self._statements.append((_APPEND, values))
        self.entries.append(
            trail.TrailEntry(
                notice_id=self.notice.notice_id,
                reset_request_id=self.notice.reset_request_id,
                channel=channel,
                from_state=start,
                to_state=end,
                reason=reason,
                receipt_id=origin.receipt_id,
                remaining_s=trail.remaining_seconds(self.notice.expires_at, self.now),
            )
        )

    def write(self, connection: psycopg.Connection[Row], pipeline: psycopg.Pipeline) -> None:
        """Send the statements; a guard that does not hold any more undoes them all."""
        cursors = [statement.run(connection, values) for statement, values in self._statements]
        pipeline.sync()  # a pipelined cursor knows its row count only from here on
        for cursor in cursors:
            if cursor.rowcount != 1:
                message = "a row changed under its lock"
                raise RuntimeError(message)


@contextmanager
def held(
    connection: psycopg.Connection[Row], notice_id: UUID, *, patience_ms: int | None = None
) -> Iterator[Book]:
    """Lock a notice, give its book, write what was decided and commit.

    `patience_ms` is how long a lock may be waited for (None: the connection's usual time). An
    exception inside undoes everything. Two round trips in all.
    """
    with connection.pipeline() as pipeline, connection.transaction():
        if patience_ms is not None:
            # For this transaction only: behind a pooler the session is somebody else's next.
            connection.execute(PATIENCE, [f"{patience_ms}ms"])
        rows = hold(connection, notice_id)
        book = Book(rows.notice, rows.deliveries, rows.attempts, rows.now, rows.halts)
        yield book
        book.write(connection, pipeline)
