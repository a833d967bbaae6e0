"""The trail's row: its columns, how one is sealed, and what is told about it after commit.

Every statement that changes a state writes its row through the SQL kept here, so that the
chain has one definition: `hash = trail_hash(previous head of the notice, the row)`, computed
in the database, in the statement that makes the change. A statement holds the notice's row
lock before it reads the head, so chains never fork.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

Row = dict[str, Any]

COLUMNS: Final = (
    "notice_id",
    "seq",
    "recorded_at",
    "occurred_at",
    "event_id",
    "reset_request_id",
    "correlation_id",
    "channel",
    "attempt",
    "actor",
    "from_state",
    "to_state",
    "reason",
    "detail",
    "provider",
    "provider_ref",
    "receipt_id",
    "remaining_us",
    "template_revision",
    "policy_revision",
    "evidence",
)
"""The columns under the hash, in the order in which they are hashed."""


def sealed(previous: str, row: str) -> str:
    """SQL for the hash of `row` (an alias with all `COLUMNS`) chained to `previous`."""
    return f"trail_hash({previous}, {', '.join(f'{row}.{name}' for name in COLUMNS)})"


def insert_into(source: str, previous: str = "prev_hash") -> str:
    """SQL that inserts the rows of `source` (with `COLUMNS` and `previous`), sealing each."""
    names = ", ".join(COLUMNS)
    picked = ", ".join(f"r.{name}" for name in COLUMNS)
    return (
        f"INSERT INTO transition ({names}, prev_hash, hash) "
        f"SELECT {picked}, r.{previous}, {sealed(f'r.{previous}', 'r')} FROM {source} r"
    )


CHAIN: Final = f"""
    step_rows AS (
        SELECT h.notice_id, h.seq + 1 AS seq, clock.now AS recorded_at,
               coalesce(s.occurred_at, clock.now) AS occurred_at,
               h.event_id, h.reset_request_id, h.correlation_id,
               s.channel, s.attempt, s.actor, s.from_state, s.to_state, s.reason, s.detail,
               s.provider, s.provider_ref, s.receipt_id,
               micros(h.expires_at) - micros(clock.now) AS remaining_us,
               h.template_id || '@' || h.template_revision AS template_revision,
               h.policy_revision, s.evidence, h.head AS prev_hash
          FROM step s JOIN held h USING (notice_id) CROSS JOIN clock),
    chained AS (
        {insert_into("step_rows")}
        RETURNING notice_id, seq, hash),
    headed AS (
        UPDATE notice n SET seq = c.seq, head = c.hash, changed_at = clock.now
          FROM chained c CROSS JOIN clock WHERE n.notice_id = c.notice_id)
"""
"""CTEs that end a statement: they seal what the CTE `step` did to the notices in `held`.

Needs `clock(now)`, `held` (locked notice rows) and `step` (notice_id, channel, attempt,
actor, from_state, to_state, reason, detail, provider, provider_ref, receipt_id,
occurred_at, evidence), at most one row a notice.
"""


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """What is logged of one committed row; ids and words of our own only."""

    notice_id: UUID
    reset_request_id: str
    channel: str | None
    from_state: str | None
    to_state: str | None
    reason: str
    receipt_id: UUID | None
    remaining_s: float


Announce = Callable[[Iterable[TrailEntry]], None]
"""Called after the commit that made the entries durable, never before."""


def remaining_seconds(expires_at: datetime, now: datetime) -> float:
    """Validity left at `now`, in seconds; negative after expiry."""
    return (expires_at - now).total_seconds()
