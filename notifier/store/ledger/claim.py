"""Claims due deliveries: one statement that leases rows and hands out a fencing token.

The predicate holds everything that forbids a start already now: the due time, the stop time,
a fallback that is to be decided first, halts and provider pauses. All of it is asked again by
the intent; here it only saves work.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg

from notifier.store import trail
from notifier.store.ledger.pauses import SHUT
from notifier.store.statement import Statement

Row = dict[str, Any]

SCOPES: Final = """ARRAY['all', 'channel:' || d.channel, 'provider:' || %(provider)s::text,
    'template:' || n.template_id || '@' || n.template_revision,
    'account:' || n.account_id, 'event:' || n.event_id]"""
"""The halts a delivery `d` of a notice `n` falls under, were it sent through `provider`."""

HALTED: Final = f"""EXISTS (SELECT FROM halt x
    WHERE x.released_at IS NULL AND x.scope = ANY ({SCOPES}))"""

# From the fallback time on an unsent email makes way for a text that can go. A text that is
# halted or out of time cannot, and then the email goes on to its own stop time.
FALLBACK_FIRST: Final = """(d.channel = 'email' AND coalesce(n.fallback_at <= clock.now, false)
    AND EXISTS (SELECT FROM delivery t
        WHERE t.notice_id = n.notice_id AND t.channel = 'sms' AND t.state = 'standby'
          AND t.stop_at > clock.now AND t.attempts = 0
          AND NOT EXISTS (SELECT FROM halt x WHERE x.released_at IS NULL
              AND x.scope = ANY (ARRAY['all', 'channel:sms', 'provider:' || t.provider,
                  'template:' || n.template_id || '@' || n.template_revision,
                  'account:' || n.account_id, 'event:' || n.event_id]))))"""

# The candidates are picked in a materialised CTE: with IN (… LIMIT … SKIP LOCKED) a nested
# loop may run the inner part again and take more rows than asked for.
CLAIM: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    held AS MATERIALIZED (
        SELECT n.notice_id, n.event_id, n.reset_request_id, n.account_id, n.correlation_id,
               n.template_id, n.template_revision, n.locale_used, n.policy_revision,
               n.expires_at, n.seq, n.head, d.channel
          FROM clock CROSS JOIN delivery d JOIN notice n USING (notice_id)
         WHERE d.state = 'queued' AND d.channel = %(channel)s
           AND d.due_at <= clock.now AND d.stop_at > clock.now
           AND n.canceled_at IS NULL
           AND NOT {FALLBACK_FIRST}
           AND NOT {HALTED} AND NOT {SHUT}
         ORDER BY d.stop_at, d.notice_id
         LIMIT %(slots)s
           FOR UPDATE OF n, d SKIP LOCKED),
    leased AS (
        UPDATE delivery d
           SET state = 'claimed', reason = 'claimed', detail = NULL, fence = d.fence + 1,
               provider = %(provider)s, lease_owner = %(owner)s,
               lease_until = clock.now + %(lease)s, changed_at = clock.now
          FROM held CROSS JOIN clock
         WHERE d.notice_id = held.notice_id AND d.channel = held.channel AND d.state = 'queued'
        RETURNING d.notice_id, d.channel, d.fence, d.stop_at, d.attempts, d.link_tries,
                  d.lease_until),
    step AS (
        SELECT notice_id, channel, NULL::integer AS attempt, 'worker' AS actor,
               'queued' AS from_state, 'claimed' AS to_state, 'claimed' AS reason,
               NULL::text AS detail, %(provider)s::text AS provider, NULL::text AS provider_ref,
               NULL::uuid AS receipt_id, NULL::timestamptz AS occurred_at,
               NULL::jsonb AS evidence
          FROM leased),
    {trail.CHAIN}
SELECT l.*, clock.now, held.event_id, held.reset_request_id, held.account_id,
       held.template_id, held.template_revision, held.locale_used, held.policy_revision,
       held.expires_at
  FROM leased l JOIN held USING (notice_id) CROSS JOIN clock
"""

_CLAIM: Final = Statement(CLAIM)


@dataclass(frozen=True, slots=True)
class Take:
    """What a claim may take: up to `slots`, for `lease`.

    `turn_until` is its turn where it is to try a paused provider (`ledger/pauses`).
    """

    slots: int
    lease: timedelta
    turn_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Original:
    """The attempt whose call is to be repeated."""

    number: int
    reference: str
    message_digest: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One leased delivery. Times are the database's; `now` is when the lease began.

    `repeats` is set where the claim is for the replay of an attempt: then the delivery stands
    at `unknown`, and nothing but a receipt or an answer ends it (see `ledger/replay`).
    `turn_until` is set where its call is to try a paused provider (`ledger/pauses`).
    """

    notice_id: UUID
    channel: str
    fence: int
    stop_at: datetime
    attempts: int
    link_tries: int
    lease_until: datetime
    now: datetime
    event_id: str
    reset_request_id: str
    account_id: str
    template_id: str
    template_revision: str
    locale_used: str
    policy_revision: int
    expires_at: datetime
    turn_until: datetime | None = None
    repeats: Original | None = None


def claim(
    connection: psycopg.Connection[Row],
    *,
    channel: str,
    provider: str,
    owner: str,
    take: Take,
) -> tuple[list[Claim], list[trail.TrailEntry]]:
    """Lease due deliveries of `channel`, those with the least validity first."""
    values = {
        "channel": channel,
        "provider": provider,
        "owner": owner,
        "slots": take.slots,
        "lease": take.lease,
        "turn_until": take.turn_until,
    }
    rows = _CLAIM.run(connection, values).fetchall()
    claims = sorted(
        (Claim(**row, turn_until=take.turn_until) for row in rows), key=lambda claim: claim.stop_at
    )
    return claims, [_entry(claim) for claim in claims]


def _entry(claim: Claim) -> trail.TrailEntry:
    return trail.TrailEntry(
        notice_id=claim.notice_id,
        reset_request_id=claim.reset_request_id,
        channel=claim.channel,
        from_state="queued",
        to_state="claimed",
        reason="claimed",
        receipt_id=None,
        remaining_s=trail.remaining_seconds(claim.expires_at, claim.now),
    )
