"""Admits an event: keys, event, notice, deliveries and the first trail rows in one statement.

The three unique keys decide who is first; whoever is not reads what the first one stored
and compares the content's keyed digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg

from notifier.store import trail
from notifier.store.statement import Statement

Row = dict[str, Any]

_FACTS: Final = """
    %(notice_id)s::uuid AS notice_id, clock.now AS recorded_at, clock.now AS occurred_at,
    %(event_id)s::text AS event_id, %(reset_request_id)s::text AS reset_request_id,
    %(correlation_id)s::text AS correlation_id, NULL::integer AS attempt,
    'service' AS actor, NULL::text AS from_state, NULL::text AS provider,
    NULL::text AS provider_ref, NULL::uuid AS receipt_id, NULL::text AS detail,
    micros(%(expires_at)s) - micros(clock.now) AS remaining_us,
    %(template_id)s::text || '@' || %(template_revision)s::text AS template_revision,
    %(policy_revision)s::integer AS policy_revision
"""

ADMIT: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    account AS MATERIALIZED (
        SELECT EXISTS (SELECT FROM admission a WHERE a.account_id = %(account_id)s
                          AND a.supersedes AND a.requested_at > %(requested_at)s) AS superseded,
               %(cap)s > 0 AND (
                   SELECT count(*) FROM (
                       SELECT FROM admission a CROSS JOIN clock
                        WHERE a.account_id = %(account_id)s
                          AND a.admitted_at > clock.now - interval '1 hour'
                        LIMIT nullif(%(cap)s, 0)) recent) >= %(cap)s AS capped),
    timed AS (
        SELECT account.*, now, now >= %(expires_at)s AS dead,
               greatest(least(now + %(window)s, %(expires_at)s - %(reserve)s),
                        now + %(min_wait)s) AS decide_at
          FROM clock CROSS JOIN account),
    chosen AS (
        SELECT timed.*,
               CASE WHEN dead THEN 'expired_on_arrival'
                    WHEN superseded THEN 'reset_superseded'
                    WHEN %(email_suppression)s::text IS NOT NULL
                        THEN %(email_suppression)s::text
                    WHEN capped THEN 'account_cap_reached'
                    ELSE 'primary_selected'
               END AS email_reason,
               CASE WHEN dead THEN 'expired_on_arrival'
                    WHEN superseded THEN 'reset_superseded'
                    WHEN %(sms_suppression)s::text IS NOT NULL THEN %(sms_suppression)s::text
                    WHEN capped THEN 'account_cap_reached'
                    WHEN NOT %(sms_is_fallback)s THEN 'primary_selected'
                    WHEN %(email_suppression)s::text IS NOT NULL THEN 'fallback_email_suppressed'
                    WHEN decide_at + %(sms_room)s > %(sms_stop_at)s
                        THEN 'life_too_short_for_fallback'
                    ELSE 'fallback_reserved'
               END AS sms_reason
          FROM timed),
    plan AS MATERIALIZED (
        SELECT chosen.*,
               CASE email_reason WHEN 'expired_on_arrival' THEN 'expired'
                    WHEN 'reset_superseded' THEN 'canceled'
                    WHEN 'primary_selected' THEN 'queued' ELSE 'suppressed' END AS email_state,
               CASE sms_reason WHEN 'expired_on_arrival' THEN 'expired'
                    WHEN 'reset_superseded' THEN 'canceled'
                    WHEN 'primary_selected' THEN 'queued'
                    WHEN 'fallback_email_suppressed' THEN 'queued'
                    WHEN 'fallback_reserved' THEN 'standby' ELSE 'suppressed' END AS sms_state
          FROM chosen),
    stops AS MATERIALIZED (
        SELECT plan.*,
               greatest(CASE WHEN email_state = 'queued' THEN %(email_stop_at)s END,
                        CASE WHEN sms_state IN ('queued', 'standby') THEN %(sms_stop_at)s END)
                   AS stop_at,
               notice_state(email_state, false, sms_state, false, %(sms_is_fallback)s,
                            superseded AND NOT dead) AS notice_state
          FROM plan),
    admitted AS (
        INSERT INTO admission (notice_id, event_id, idempotency_key, reset_request_id, account_id,
                               requested_at, admitted_at, supersedes, content_digest, stop_at,
                               expires_at)
        SELECT %(notice_id)s, %(event_id)s, %(idempotency_key)s, %(reset_request_id)s,
               %(account_id)s, %(requested_at)s, now, %(supersedes)s, %(content_digest)s, stop_at,
               %(expires_at)s
          FROM stops
        ON CONFLICT DO NOTHING
        RETURNING notice_id),
    event AS (
        INSERT INTO reset_event (notice_id, event_id, transport_id, signing_key_id, locale,
                                 locale_used, mode, reason_code, decision_id, decision_digest,
                                 email_consent, sms_consent, region, correlation_id, received_at)
        SELECT notice_id, %(event_id)s, %(transport_id)s, %(signing_key_id)s, %(locale)s,
               %(locale_used)s, %(mode)s, %(reason_code)s, %(decision_id)s, %(decision_digest)s,
               %(email_consent)s, %(sms_consent)s, %(region)s, %(correlation_id)s, clock.now
          FROM admitted CROSS JOIN clock),
    ticket AS (
        INSERT INTO ticket_link (ticket_id, notice_id, linked_at, linked_by)
        SELECT %(ticket_id)s, notice_id, clock.now, 'service'
          FROM admitted CROSS JOIN clock WHERE %(ticket_id)s::text IS NOT NULL),
    contacts AS (
        INSERT INTO contact (notice_id, channel, mask, fingerprint, source, learnt_at)
        SELECT a.notice_id, c.channel, c.mask, c.fingerprint, 'event', clock.now
          FROM admitted a CROSS JOIN clock
          CROSS JOIN (VALUES ('email', %(email_mask)s::text, %(email_fingerprint)s::bytea),
                             ('sms', %(sms_mask)s::text, %(sms_fingerprint)s::bytea))
                     AS c (channel, mask, fingerprint)
         WHERE c.mask IS NOT NULL),
    deliveries AS (
        INSERT INTO delivery (notice_id, channel, state, reason, is_fallback, provider, stop_at,
                              expires_at, due_at, changed_at)
        SELECT a.notice_id, d.channel, d.state, d.reason, d.is_fallback,
               CASE WHEN d.state IN ('queued', 'standby') THEN d.provider END, d.stop_at,
               %(expires_at)s, stops.now, stops.now
          FROM admitted a CROSS JOIN stops
          CROSS JOIN LATERAL (VALUES
              ('email', email_state, email_reason, false, %(email_provider)s::text,
               %(email_stop_at)s::timestamptz),
              ('sms', sms_state, sms_reason, %(sms_is_fallback)s, %(sms_provider)s::text,
               %(sms_stop_at)s::timestamptz))
              AS d (channel, state, reason, is_fallback, provider, stop_at)),
    first_row AS (
        SELECT {_FACTS}, 1 AS seq, NULL::text AS channel, NULL::text AS to_state,
               'event_admitted' AS reason, %(evidence)s::jsonb AS evidence
          FROM clock),
    second_row AS (
        SELECT {_FACTS}, 2 AS seq, 'email' AS channel, stops.email_state AS to_state,
               stops.email_reason AS reason, NULL::jsonb AS evidence
          FROM clock CROSS JOIN stops),
    third_row AS (
        SELECT {_FACTS}, 3 AS seq, 'sms' AS channel, stops.sms_state AS to_state,
               stops.sms_reason AS reason,
               CASE WHEN stops.sms_state = 'standby' THEN jsonb_build_object(
                   'fallback_at', to_char(stops.decide_at AT TIME ZONE 'UTC',
                                          'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) END AS evidence
          FROM clock CROSS JOIN stops),
    hashes AS MATERIALIZED (
        SELECT zero.h AS h0, one.h AS h1, two.h AS h2, three.h AS h3
          FROM first_row, second_row, third_row,
               LATERAL (SELECT sha256(convert_to(%(notice_id)s::uuid::text, 'UTF8')) AS h) zero,
               LATERAL (SELECT {trail.sealed("zero.h", "first_row")} AS h) one,
               LATERAL (SELECT {trail.sealed("one.h", "second_row")} AS h) two,
               LATERAL (SELECT {trail.sealed("two.h", "third_row")} AS h) three),
    written AS (
        INSERT INTO transition ({", ".join(trail.COLUMNS)}, prev_hash, hash)
        SELECT {", ".join(f"r.{name}" for name in trail.COLUMNS)}, r.prev_hash, r.hash
          FROM admitted CROSS JOIN hashes CROSS JOIN LATERAL (
              SELECT first_row.*, h0 AS prev_hash, h1 AS hash FROM first_row UNION ALL
              SELECT second_row.*, h1, h2 FROM second_row UNION ALL
              SELECT third_row.*, h2, h3 FROM third_row) r),
    noticed AS (
        INSERT INTO notice (notice_id, event_id, reset_request_id, account_id, correlation_id,
                            template_id, template_revision, locale_used, policy_revision, mode,
                            state, canceled_reason, canceled_at, created_at, expires_at,
                            fallback_at, seq, head, changed_at)
        SELECT notice_id, %(event_id)s, %(reset_request_id)s, %(account_id)s, %(correlation_id)s,
               %(template_id)s, %(template_revision)s, %(locale_used)s, %(policy_revision)s,
               %(mode)s, stops.notice_state,
               CASE WHEN superseded AND NOT dead THEN 'superseded' END,
               CASE WHEN superseded AND NOT dead THEN stops.now END,
               stops.now, %(expires_at)s,
               CASE WHEN stops.sms_state = 'standby' THEN stops.decide_at END, 3, h3, stops.now
          FROM admitted CROSS JOIN stops CROSS JOIN hashes)
SELECT admitted.notice_id, stops.now, stops.notice_state AS state, stops.stop_at,
       stops.email_state, stops.email_reason, stops.sms_state, stops.sms_reason
  FROM stops LEFT JOIN admitted ON true
"""

# A count sees what was committed before its statement began, so whoever counts waits first.
# The two halves of the key keep accounts apart from the gate of the halts.
ACCOUNT_ALONE: Final = "SELECT pg_advisory_xact_lock(1667330149, hashtext(%(account_id)s))"

EARLIER_OPEN: Final = """
SELECT a.notice_id FROM admission a JOIN notice n USING (notice_id)
 WHERE a.account_id = %(account_id)s AND a.requested_at < %(requested_at)s
   AND n.canceled_at IS NULL AND n.expires_at > db_now()
 ORDER BY a.requested_at DESC LIMIT 1000
"""

EARLIER: Final = """
SELECT a.notice_id, a.event_id, a.idempotency_key, a.reset_request_id, a.content_digest,
       a.stop_at, a.expires_at, n.state
  FROM admission a JOIN notice n USING (notice_id)
 WHERE a.event_id = %(event_id)s OR a.idempotency_key = %(idempotency_key)s
    OR a.reset_request_id = %(reset_request_id)s
 ORDER BY (a.event_id = %(event_id)s) DESC, (a.idempotency_key = %(idempotency_key)s) DESC
"""

KEYS: Final = ("event_id", "idempotency_key", "reset_request_id")

_ADMIT: Final = Statement(ADMIT)
_EARLIER: Final = Statement(EARLIER)


@dataclass(frozen=True, slots=True)
class Stored:
    """The notice that an event has: just made (`created`), or there before."""

    notice_id: UUID
    state: str
    stop_at: datetime | None
    expires_at: datetime
    created: bool


@dataclass(frozen=True, slots=True)
class Clash:
    """The same id, key or reset request (`keys`) stands for other content; `notice_id` has it."""

    notice_id: UUID
    keys: tuple[str, ...]


CONFIRM: Final = "SELECT pg_logical_emit_message(true, 'notifier', 'seen')"
"""A commit that changes nothing and yet waits for the standby, as all before it then have.

A row can be visible here before any standby has it: where the wait of its own commit was broken
off. Whoever is told of it again must not be told earlier than whoever brought it.
"""


def admit(
    connection: psycopg.Connection[Row], values: Row, digests: Sequence[bytes]
) -> tuple[Stored | Clash, list[trail.TrailEntry]]:
    """Store the event once.

    `values` are the parameters of `ADMIT`; `digests` the content's digest under every active
    key, so that a repeat is recognised across a key rotation.
    """
    row = _insert(connection, values)
    if row["notice_id"] is not None:
        stored = Stored(
            row["notice_id"], row["state"], row["stop_at"], values["expires_at"], created=True
        )
        return stored, _entries(values, row)
    earlier = find(connection, values, digests)
    assert earlier is not None  # noqa: S101 - whoever conflicted has committed by now
    return earlier, []


def _insert(connection: psycopg.Connection[Row], values: Row) -> Row:
    """The one statement; where accounts are capped, after all others of this account."""
    if values["cap"]:
        with connection.transaction():
            connection.execute(ACCOUNT_ALONE, values)
            row = _ADMIT.run(connection, values).fetchone()
    else:
        row = _ADMIT.run(connection, values).fetchone()
    assert row is not None  # noqa: S101 - `stops` always gives one row
    return row


def find(
    connection: psycopg.Connection[Row], keys: Row, digests: Sequence[bytes]
) -> Stored | Clash | None:
    """What stands under `event_id`, `idempotency_key` or `reset_request_id`, if anything does.

    What is given is as durable as when it was first answered: see `CONFIRM`.
    """
    rows = _EARLIER.run(connection, keys).fetchall()
    if not rows:
        return None
    first = rows[0]
    same = len(rows) == 1 and first["content_digest"] in digests
    if not same:
        return Clash(first["notice_id"], _known(rows, keys))
    connection.execute(CONFIRM)
    return Stored(
        first["notice_id"], first["state"], first["stop_at"], first["expires_at"], created=False
    )


def _known(rows: Sequence[Row], keys: Row) -> tuple[str, ...]:
    """The names of those keys that some of the rows have; a key that repeats the id is no other."""
    names = tuple(name for name in KEYS if any(row[name] == keys[name] for row in rows))
    is_default = keys["idempotency_key"] == keys["event_id"] and "event_id" in names
    return tuple(name for name in names if not (is_default and name == "idempotency_key"))


def earlier_open(connection: psycopg.Connection[Row], event: Row) -> list[UUID]:
    """Live notices of the same account that were requested before `event`."""
    return [row["notice_id"] for row in connection.execute(EARLIER_OPEN, event)]


def _entries(values: Row, row: Row) -> list[trail.TrailEntry]:
    remaining = trail.remaining_seconds(values["expires_at"], row["now"])
    facts = (
        (None, None, "event_admitted"),
        ("email", row["email_state"], row["email_reason"]),
        ("sms", row["sms_state"], row["sms_reason"]),
    )
    return [
        trail.TrailEntry(
            notice_id=row["notice_id"],
            reset_request_id=values["reset_request_id"],
            channel=channel,
            from_state=None,
            to_state=state,
            reason=reason,
            receipt_id=None,
            remaining_s=remaining,
        )
        for channel, state, reason in facts
    ]
