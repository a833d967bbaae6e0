"""Commits the intent: the last moment at which anything can still forbid the call.

Two statements in one transaction and one round trip. The first does all the waiting: it locks
the notice, then takes the halts' gate shared. It must be a statement of its own, because one
that waited for a lock still reads with the snapshot, and the time, that it began with. The
second asks every guard again and, only if all agree, writes the attempt, moves claimed to
attempted and seals the trail row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypedDict, Unpack
from uuid import UUID

import psycopg

from notifier.store import trail
from notifier.store.ledger.claim import FALLBACK_FIRST, HALTED
from notifier.store.ledger.halts import GATE_SHARED
from notifier.store.ledger.pauses import SHUT
from notifier.store.statement import Statement

Row = dict[str, Any]


class Verdict(StrEnum):
    """What the intent's guards said; only `started` permits the call."""

    STARTED = "started"
    FENCED = "fenced"
    CANCELED = "canceled"
    SUPERSEDED = "superseded"
    TOO_LATE = "too_late"
    FALLBACK_DUE = "fallback_due"
    NOT_NEEDED = "not_needed"
    HALTED = "halted"
    PAUSED = "paused"


# The gate last: an engagement waits for whoever has it, and must not wait for a row's holder.
HOLD: Final = f"""
WITH held AS MATERIALIZED (
    SELECT notice_id FROM notice WHERE notice_id = %(notice_id)s FOR UPDATE)
{GATE_SHARED} FROM held
"""

# A later request of the account superseded this one. Its admission cancels earlier notices
# itself; this catches one that was admitted beside it, or that it did not come to.
SUPERSEDED: Final = """EXISTS (SELECT FROM admission own
    JOIN admission later ON later.account_id = own.account_id AND later.supersedes
     AND later.requested_at > own.requested_at
   WHERE own.notice_id = n.notice_id)"""

# A claimed text stands back at its intent when the email is known to have arrived (design 11.5).
ARRIVED_ALREADY: Final = """(d.channel = 'sms' AND d.is_fallback AND d.attempts = 0 AND EXISTS (
    SELECT FROM delivery e WHERE e.notice_id = n.notice_id AND e.channel = 'email'
       AND (e.state = 'delivered' OR (e.state = 'accepted' AND e.final_acceptance))))"""

INTENT: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    held AS MATERIALIZED (
        SELECT n.notice_id, n.event_id, n.reset_request_id, n.account_id, n.correlation_id,
               n.template_id, n.template_revision, n.policy_revision, n.canceled_at,
               n.fallback_at, n.expires_at, n.seq, n.head, d.channel, d.state, d.fence,
               d.lease_owner, d.stop_at, d.attempts, {HALTED} AS halted, {SHUT} AS paused,
               {FALLBACK_FIRST} AS fallback_first, {SUPERSEDED} AS superseded,
               {ARRIVED_ALREADY} AS arrived_already
          FROM clock CROSS JOIN notice n JOIN delivery d USING (notice_id)
         WHERE n.notice_id = %(notice_id)s AND d.channel = %(channel)s
           FOR UPDATE OF n, d),
    judged AS MATERIALIZED (
        SELECT held.*, clock.now,
               CASE WHEN state <> 'claimed' OR fence <> %(fence)s OR lease_owner <> %(owner)s
                        THEN 'fenced'
                    WHEN canceled_at IS NOT NULL THEN 'canceled'
                    WHEN clock.now >= least(stop_at, %(not_after)s) THEN 'too_late'
                    WHEN superseded THEN 'superseded'
                    WHEN fallback_first THEN 'fallback_due'
                    WHEN arrived_already THEN 'not_needed'
                    WHEN halted THEN 'halted'
                    WHEN paused THEN 'paused'
                    ELSE 'started' END AS verdict
          FROM held CROSS JOIN clock),
    attempted AS (
        INSERT INTO attempt (notice_id, channel, number, class, key, reference, provider,
                             template_id, template_revision, message_digest, owner, fence,
                             started_at, deadline)
        SELECT notice_id, channel, attempts + 1, c.class,
               event_id || ':' || channel || ':' || c.class, %(reference)s, %(provider)s,
               template_id, template_revision, %(message_digest)s, %(owner)s, fence, now,
               least(now + %(budget)s, stop_at)
          FROM judged
          CROSS JOIN LATERAL (SELECT CASE attempts WHEN 0 THEN 'first'
                                          ELSE 'retry-' || attempts END AS class) c
         WHERE verdict = 'started'
        RETURNING number, class, key, deadline),
    moved AS (
        UPDATE delivery d
           SET state = 'attempted', reason = 'attempt_started', attempts = a.number,
               lease_until = a.deadline, may_have_left = true, changed_at = clock.now
          FROM attempted a CROSS JOIN clock
         WHERE d.notice_id = %(notice_id)s AND d.channel = %(channel)s),
    step AS (
        SELECT j.notice_id, j.channel, a.number AS attempt, 'worker' AS actor,
               'claimed' AS from_state, 'attempted' AS to_state, 'attempt_started' AS reason,
               NULL::text AS detail, %(provider)s::text AS provider,
               %(reference)s::text AS provider_ref, NULL::uuid AS receipt_id,
               NULL::timestamptz AS occurred_at, jsonb_build_object('class', a.class) AS evidence
          FROM judged j CROSS JOIN attempted a),
    {trail.CHAIN}
SELECT j.verdict, j.now, j.stop_at, j.expires_at, a.number, a.key, a.deadline
  FROM judged j LEFT JOIN attempted a ON true
"""

_HOLD: Final = Statement(HOLD)
_INTENT: Final = Statement(INTENT)


class StartValues(TypedDict):
    """What an intent and the start of a replay ask alike.

    `budget` is the longest the call may take, `not_after` a stop time shortened by the link
    answer, `turn_until` the claim's turn to try a paused provider.
    """

    notice_id: UUID
    channel: str
    fence: int
    owner: str
    provider: str
    reference: str
    message_digest: str
    budget: timedelta
    not_after: datetime
    turn_until: datetime | None


@dataclass(frozen=True, slots=True)
class Intent:
    """The guards' verdict and, where it is `started`, the attempt that may now be made."""

    verdict: Verdict
    now: datetime
    stop_at: datetime
    expires_at: datetime
    number: int
    key: str
    deadline: datetime


def intent(connection: psycopg.Connection[Row], **values: Unpack[StartValues]) -> Intent:
    """Ask all guards and commit the attempt. A notice that is not there is reported as fenced."""
    with connection.pipeline(), connection.transaction():
        _HOLD.run(connection, values)
        row = _INTENT.run(connection, values).fetchone()
    if row is None:
        not_after = values["not_after"]
        return Intent(Verdict.FENCED, not_after, not_after, not_after, 0, "", not_after)
    return Intent(
        verdict=Verdict(row["verdict"]),
        now=row["now"],
        stop_at=row["stop_at"],
        expires_at=row["expires_at"],
        number=row["number"] or 0,
        key=row["key"] or "",
        deadline=row["deadline"] or row["now"],
    )
