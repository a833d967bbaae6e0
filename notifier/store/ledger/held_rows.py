"""What a book is opened on: a notice's rows under their locks, and how they are read.

The order of the statements is the lock order of the whole product: the notice, then its
deliveries (email first), then its attempts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg

from notifier.domain.states import Channel, DeliveryState
from notifier.store.statement import Statement

Row = dict[str, Any]

_NOTICE: Final = Statement("""
SELECT notice_id, event_id, reset_request_id, account_id, template_id, template_revision,
       locale_used, policy_revision, mode, state, basis, canceled_reason, canceled_at,
       created_at, expires_at, fallback_at, hold_noted, avoidable_noted
  FROM notice WHERE notice_id = %(notice_id)s FOR UPDATE
""")

_DELIVERIES: Final = Statement("""
SELECT channel, state, reason, detail, is_fallback, provider, final_acceptance, stop_at,
       expires_at, due_at, link_tries, attempts, fence, lease_owner, lease_until,
       next_check_at, looks, absent_looks, replay_due_at, may_have_left, left_at, arrived_at,
       requeued_at
  FROM delivery WHERE notice_id = %(notice_id)s ORDER BY channel FOR UPDATE
""")

# Read after the locks were granted, so that a decision never rests on the time before a wait.
_ATTEMPTS: Final = Statement("""
SELECT db_now() AS now, a.channel, a.number, a.class, a.reference, a.provider, a.owner, a.fence,
       a.started_at, a.deadline, a.finished_at, a.outcome, a.reason, a.call_ended, a.resolved_at,
       a.provider_message_id, a.replay_authorised_at, a.replay_started_at
  FROM (SELECT 1) one
  LEFT JOIN attempt a ON a.notice_id = %(notice_id)s
 ORDER BY a.channel, a.number
""")

_HALTS: Final = Statement("SELECT scope FROM halt WHERE released_at IS NULL")


@dataclass(frozen=True, slots=True)
class HeldNotice:
    """The notice's row as locked."""

    notice_id: UUID
    event_id: str
    reset_request_id: str
    account_id: str
    template_id: str
    template_revision: str
    locale_used: str
    policy_revision: int
    mode: str
    state: str
    basis: str | None
    canceled_reason: str | None
    canceled_at: datetime | None
    created_at: datetime
    expires_at: datetime
    fallback_at: datetime | None
    hold_noted: bool
    avoidable_noted: bool


@dataclass(frozen=True, slots=True)
class HeldDelivery:
    """A delivery's row as locked, kept up to date with the moves made through the book."""

    channel: Channel
    state: DeliveryState
    reason: str
    detail: str | None
    is_fallback: bool
    provider: str | None
    final_acceptance: bool
    stop_at: datetime
    expires_at: datetime
    due_at: datetime
    link_tries: int
    attempts: int
    fence: int
    lease_owner: str | None
    lease_until: datetime | None
    next_check_at: datetime | None
    looks: int
    absent_looks: int
    replay_due_at: datetime | None
    may_have_left: bool
    left_at: datetime | None
    arrived_at: datetime | None
    requeued_at: datetime | None


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """One attempt of the notice."""

    channel: str
    number: int
    klass: str
    reference: str
    provider: str
    owner: str
    fence: int
    started_at: datetime
    deadline: datetime
    finished_at: datetime | None
    outcome: str | None
    reason: str | None
    call_ended: bool
    resolved_at: datetime | None
    provider_message_id: str | None
    replay_authorised_at: datetime | None
    replay_started_at: datetime | None


class NoSuchNotice(LookupError):
    """No notice has this id."""


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Everything that is read of one notice; `now` is the database's time under the locks."""

    notice: HeldNotice
    deliveries: dict[Channel, HeldDelivery]
    attempts: list[HeldAttempt]
    now: datetime
    halts: frozenset[str]


def hold(connection: psycopg.Connection[Row], notice_id: UUID) -> HeldRows:
    """Lock the notice's rows until the transaction ends; raises `NoSuchNotice`."""
    key = {"notice_id": notice_id}
    notices = _NOTICE.run(connection, key)
    deliveries = _DELIVERIES.run(connection, key)
    attempts = _ATTEMPTS.run(connection, key)
    halts = _HALTS.run(connection, {})
    notice = notices.fetchone()
    if notice is None:
        raise NoSuchNotice
    held_deliveries = {
        Channel(row["channel"]): HeldDelivery(
            **{**row, "channel": Channel(row["channel"]), "state": DeliveryState(row["state"])}
        )
        for row in deliveries.fetchall()
    }
    attempt_rows = attempts.fetchall()
    now = attempt_rows[0]["now"]
    scopes = frozenset(row["scope"] for row in halts.fetchall())
    return HeldRows(HeldNotice(**notice), held_deliveries, _attempts(attempt_rows), now, scopes)


def _attempts(rows: list[Row]) -> list[HeldAttempt]:
    kept = []
    for row in rows:
        row.pop("now", None)
        if row["channel"] is not None:
            kept.append(HeldAttempt(klass=row.pop("class"), **row))
    return kept
