"""Claims what is to be asked of a provider by pushing its next look forward.

The push is the claim: a process that dies after it costs one look, and nothing has to be
rescued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg

Row = dict[str, Any]

# A materialised CTE, as in the claim: IN (… LIMIT … SKIP LOCKED) may take more than it says.
CLAIM: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    due AS MATERIALIZED (
        SELECT d.notice_id, d.channel FROM delivery d CROSS JOIN clock
         WHERE d.next_check_at <= clock.now AND d.state = %(state)s AND d.expires_at > clock.now
         ORDER BY d.next_check_at LIMIT %(batch)s
           FOR UPDATE OF d SKIP LOCKED),
    pushed AS (
        UPDATE delivery d
           SET looks = d.looks + 1,
               next_check_at = clock.now + make_interval(secs =>
                   (%(delays)s::float8[])[least(d.looks + 2, cardinality(%(delays)s::float8[]))])
          FROM due CROSS JOIN clock
         WHERE d.notice_id = due.notice_id AND d.channel = due.channel
        RETURNING d.notice_id, d.channel, d.looks, d.attempts, d.stop_at)
SELECT p.notice_id, p.channel, p.looks, n.event_id, n.reset_request_id, n.policy_revision,
       a.number, a.reference, a.provider, a.provider_message_id, a.started_at, a.deadline
  FROM pushed p JOIN notice n USING (notice_id)
  JOIN attempt a ON a.notice_id = p.notice_id AND a.channel = p.channel AND a.number = p.attempts
"""

# Attempts to the same person through the same provider whose message could be the one found.
RIVALS: Final = """
SELECT count(*) AS rivals
  FROM contact c JOIN attempt a USING (notice_id, channel)
 WHERE c.channel = %(channel)s AND c.fingerprint = ANY (%(fingerprints)s)
   AND a.provider = %(provider)s AND a.provider_message_id IS NULL
   AND a.started_at < %(until)s AND a.deadline > %(since)s
   AND coalesce(a.outcome, 'unknown') = 'unknown'
   AND NOT (a.notice_id = %(notice_id)s AND a.number = %(number)s)
"""

# The attempt's own id too, as it stands now: a receipt may have named it since the claim.
OWNED: Final = """
SELECT provider_message_id,
       (notice_id, channel, number) = (%(notice_id)s, %(channel)s, %(number)s) AS ours
  FROM attempt
 WHERE (provider = %(provider)s AND provider_message_id = ANY (%(ids)s))
    OR ((notice_id, channel, number) = (%(notice_id)s, %(channel)s, %(number)s)
        AND provider_message_id IS NOT NULL)
"""


@dataclass(frozen=True, slots=True)
class Look:
    """One attempt that a provider is to be asked about now; `looks` counts this one."""

    notice_id: UUID
    channel: str
    looks: int
    event_id: str
    reset_request_id: str
    policy_revision: int
    number: int
    reference: str
    provider: str
    provider_message_id: str | None
    started_at: datetime
    deadline: datetime


def claim(
    connection: psycopg.Connection[Row], *, state: str, delays_s: Sequence[float], batch: int
) -> list[Look]:
    """Take up to `batch` due looks; the next one is due after the delay that follows."""
    values = {"state": state, "delays": list(delays_s), "batch": batch}
    return [Look(**row) for row in connection.execute(CLAIM, values)]


def rivals(
    connection: psycopg.Connection[Row],
    look: Look,
    *,
    fingerprints: Sequence[bytes],
    since: datetime,
    until: datetime,
) -> int:
    """How many other attempts to that person could own a message from this span of time."""
    row = connection.execute(
        RIVALS,
        {
            "channel": look.channel,
            "fingerprints": list(fingerprints),
            "provider": look.provider,
            "notice_id": look.notice_id,
            "number": look.number,
            "since": since,
            "until": until,
        },
    ).fetchone()
    return int(row["rivals"]) if row else 0


def owned(
    connection: psycopg.Connection[Row], look: Look, message_ids: Sequence[str]
) -> tuple[str | None, set[str]]:
    """The provider's id of the attempt itself, if known, and those that belong to other ones."""
    values = {
        "provider": look.provider,
        "ids": list(message_ids),
        "notice_id": look.notice_id,
        "channel": look.channel,
        "number": look.number,
    }
    rows = connection.execute(OWNED, values).fetchall()
    own = next((row["provider_message_id"] for row in rows if row["ours"]), None)
    return own, {row["provider_message_id"] for row in rows if not row["ours"]}
