"""Claims deliveries whose call may be repeated, and starts a replay under every guard.

Reconciliation marks an unknown delivery; the mark is all that it can do. Whoever sends claims
the mark by pushing it forward, with a new fencing token, while the delivery stays unknown. The
start is an intent of its own kind: it asks all that an intent asks, and beyond it whether the
key is still young, the message the same, and no replay of the attempt began before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Unpack
from uuid import UUID

import psycopg

from notifier.store import trail
from notifier.store.ledger.claim import FALLBACK_FIRST, HALTED, Claim, Original, Take
from notifier.store.ledger.intent import HOLD, SUPERSEDED, StartValues
from notifier.store.ledger.pauses import SHUT
from notifier.store.statement import Statement

Row = dict[str, Any]


class ReplayVerdict(StrEnum):
    """What the guards said; only `started` permits the call."""

    STARTED = "started"
    FENCED = "fenced"
    RESOLVED = "resolved"
    STARTED_BEFORE = "started_before"
    CANCELED = "canceled"
    SUPERSEDED = "superseded"
    TOO_LATE = "too_late"
    FALLBACK_TAKEN = "fallback_taken"
    NOT_NEEDED = "not_needed"
    HALTED = "halted"
    PAUSED = "paused"
    KEY_TOO_OLD = "key_too_old"
    CHANGED = "changed"


# Once the text was queued in an email's place, the email starts nothing more, whatever became
# of the text. From the fallback time on that is about to happen, unless the policy holds.
FALLBACK_TAKEN: Final = f"""(d.channel = 'email' AND (
    ({FALLBACK_FIRST} AND NOT n.hold_noted)
    OR EXISTS (SELECT FROM delivery t WHERE t.notice_id = n.notice_id AND t.channel = 'sms'
                  AND t.requeued_at IS NOT NULL)))"""

ARRIVED_ALREADY: Final = """(d.channel = 'sms' AND d.is_fallback AND EXISTS (
    SELECT FROM delivery e WHERE e.notice_id = n.notice_id AND e.channel = 'email'
       AND (e.state = 'delivered' OR (e.state = 'accepted' AND e.final_acceptance))))"""

# A key's second half is left alone: neither clock nor documentation is exact to the minute.
KEY_TOO_OLD: Final = "clock.now >= a.started_at + %(key_lifetime)s::interval / 2"

CLAIM: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    marked AS MATERIALIZED (
        SELECT d.notice_id, d.channel, a.number, a.reference, a.message_digest
          FROM clock CROSS JOIN delivery d JOIN notice n USING (notice_id)
          JOIN attempt a ON a.notice_id = d.notice_id AND a.channel = d.channel
                        AND a.number = d.attempts
         WHERE d.replay_due_at <= clock.now AND d.channel = %(channel)s
           AND d.state = 'unknown' AND a.resolved_at IS NULL AND a.provider = %(provider)s
           AND d.stop_at > clock.now AND n.canceled_at IS NULL AND NOT {KEY_TOO_OLD}
           AND NOT {FALLBACK_TAKEN} AND NOT {HALTED} AND NOT {SHUT}
         ORDER BY d.stop_at, d.notice_id
         LIMIT %(slots)s
           FOR UPDATE OF d SKIP LOCKED),
    pushed AS (
        UPDATE delivery d
           SET fence = d.fence + 1, replay_due_at = clock.now + %(lease)s
          FROM marked m CROSS JOIN clock
         WHERE d.notice_id = m.notice_id AND d.channel = m.channel
        RETURNING d.notice_id, d.channel, d.fence, d.stop_at, d.attempts, d.link_tries,
                  d.replay_due_at AS lease_until)
SELECT p.*, clock.now, n.event_id, n.reset_request_id, n.account_id, n.template_id,
       n.template_revision, n.locale_used, n.policy_revision, n.expires_at,
       m.number, m.reference, m.message_digest
  FROM pushed p JOIN marked m USING (notice_id, channel) JOIN notice n USING (notice_id)
 CROSS JOIN clock
"""

START: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    held AS MATERIALIZED (
        SELECT n.notice_id, n.event_id, n.reset_request_id, n.account_id, n.correlation_id,
               n.template_id, n.template_revision, n.policy_revision, n.canceled_at,
               n.expires_at, n.seq, n.head, d.channel, d.state, d.fence, d.stop_at,
               d.replay_due_at, a.number, a.class, a.key, a.resolved_at, a.replay_started_at,
               a.message_digest, {HALTED} AS halted, {SHUT} AS paused,
               {FALLBACK_TAKEN} AS fallback_taken, {SUPERSEDED} AS superseded,
               {ARRIVED_ALREADY} AS arrived_already, {KEY_TOO_OLD} AS key_too_old
          FROM clock CROSS JOIN notice n JOIN delivery d USING (notice_id)
          JOIN attempt a ON a.notice_id = d.notice_id AND a.channel = d.channel
                        AND a.reference = %(reference)s AND a.provider = %(provider)s
         WHERE n.notice_id = %(notice_id)s AND d.channel = %(channel)s
           FOR UPDATE OF n, d, a),
    judged AS MATERIALIZED (
        SELECT held.*, clock.now,
               CASE WHEN state <> 'unknown' OR resolved_at IS NOT NULL THEN 'resolved'
                    WHEN replay_started_at IS NOT NULL THEN 'started_before'
                    WHEN replay_due_at IS NULL OR fence <> %(fence)s THEN 'fenced'
                    WHEN canceled_at IS NOT NULL THEN 'canceled'
                    WHEN clock.now >= least(stop_at, %(not_after)s) THEN 'too_late'
                    WHEN superseded THEN 'superseded'
                    WHEN fallback_taken THEN 'fallback_taken'
                    WHEN arrived_already THEN 'not_needed'
                    WHEN halted THEN 'halted'
                    WHEN paused THEN 'paused'
                    WHEN key_too_old THEN 'key_too_old'
                    WHEN message_digest <> %(message_digest)s THEN 'changed'
                    ELSE 'started' END AS verdict
          FROM held CROSS JOIN clock),
    repeated AS (
        UPDATE attempt a
           SET replay_started_at = j.now, deadline = least(j.now + %(budget)s, j.stop_at)
          FROM judged j
         WHERE j.verdict = 'started' AND a.notice_id = j.notice_id AND a.channel = j.channel
           AND a.number = j.number
        RETURNING a.number, a.class, a.key, a.deadline),
    moved AS (
        UPDATE delivery d
           SET state = 'attempted', reason = 'replay_started', detail = NULL,
               replay_due_at = NULL, next_check_at = NULL, lease_owner = %(owner)s,
               lease_until = r.deadline, changed_at = clock.now
          FROM repeated r CROSS JOIN clock
         WHERE d.notice_id = %(notice_id)s AND d.channel = %(channel)s),
    step AS (
        SELECT j.notice_id, j.channel, r.number AS attempt, 'worker' AS actor,
               'unknown' AS from_state, 'attempted' AS to_state, 'replay_started' AS reason,
               NULL::text AS detail, %(provider)s::text AS provider,
               %(reference)s::text AS provider_ref, NULL::uuid AS receipt_id,
               NULL::timestamptz AS occurred_at, jsonb_build_object('class', r.class) AS evidence
          FROM judged j CROSS JOIN repeated r),
    {trail.CHAIN}
SELECT j.verdict, j.now, j.stop_at, j.expires_at, r.number, r.key, r.deadline
  FROM judged j LEFT JOIN repeated r ON true
"""

UNRESOLVED: Final = """
SELECT FROM attempt a JOIN delivery d USING (notice_id, channel)
 WHERE a.notice_id = %(notice_id)s AND a.channel = %(channel)s AND a.number = %(number)s
   AND a.resolved_at IS NULL AND d.state = 'attempted' AND d.fence = %(fence)s
   AND d.lease_until > db_now()
"""

_CLAIM: Final = Statement(CLAIM)
_HOLD: Final = Statement(HOLD)
_START: Final = Statement(START)
_UNRESOLVED: Final = Statement(UNRESOLVED)


@dataclass(frozen=True, slots=True)
class ReplayStart:
    """The guards' verdict and, where it is `started`, the bounds of the call."""

    verdict: ReplayVerdict
    now: datetime
    stop_at: datetime
    expires_at: datetime
    number: int
    key: str
    deadline: datetime


def claim(
    connection: psycopg.Connection[Row],
    *,
    channel: str,
    provider: str,
    key_lifetime: timedelta,
    take: Take,
) -> list[Claim]:
    """Take marked deliveries, those with the least validity left first.

    They stay unknown. One that is not started is due again after its lease.
    """
    values = {
        "channel": channel,
        "provider": provider,
        "key_lifetime": key_lifetime,
        "slots": take.slots,
        "lease": take.lease,
        "turn_until": take.turn_until,
    }
    rows = _CLAIM.run(connection, values).fetchall()
    return sorted((_claim(row, take) for row in rows), key=lambda claim: claim.stop_at)


def _claim(row: Row, take: Take) -> Claim:
    names = ("number", "reference", "message_digest")
    return Claim(
        repeats=Original(**{name: row.pop(name) for name in names}),
        turn_until=take.turn_until,
        **row,
    )


def start(
    connection: psycopg.Connection[Row],
    *,
    key_lifetime: timedelta,
    **values: Unpack[StartValues],
) -> ReplayStart:
    """Ask all guards and commit that the attempt's call is being repeated; once an attempt.

    `key_lifetime` is how long the provider knows a key. An attempt that is not there is
    reported as fenced.
    """
    with connection.pipeline(), connection.transaction():
        _HOLD.run(connection, values)
        row = _START.run(connection, {**values, "key_lifetime": key_lifetime}).fetchone()
    if row is None:
        fenced, not_after = ReplayVerdict.FENCED, values["not_after"]
        return ReplayStart(fenced, not_after, not_after, not_after, 0, "", not_after)
    return ReplayStart(
        verdict=ReplayVerdict(row["verdict"]),
        now=row["now"],
        stop_at=row["stop_at"],
        expires_at=row["expires_at"],
        number=row["number"] or 0,
        key=row["key"] or "",
        deadline=row["deadline"] or row["now"],
    )


def is_unresolved(
    connection: psycopg.Connection[Row], *, notice_id: UUID, channel: str, fence: int, number: int
) -> bool:
    """Whether a replay that was started is still needed and still ours."""
    values = {"notice_id": notice_id, "channel": channel, "fence": fence, "number": number}
    return _UNRESOLVED.run(connection, values).fetchone() is not None
