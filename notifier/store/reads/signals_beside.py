"""What the alert rules judge beside the work: the trail's seal, sign-ins, sender domains."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

MISSED: Final = timedelta(days=1)
"""What happened while nobody looked is told up to this much later."""
CHECKED_WITHIN: Final = timedelta(days=1)
"""A domain that was not checked for so long is not ours any more, or its sweep is told of."""

_UNSEALED: Final = """
    SELECT EXISTS (SELECT FROM transition WHERE written_in >= coalesce(
        (SELECT cut FROM checkpoint ORDER BY number DESC LIMIT 1), '0'::xid8)) AS unsealed
"""

# A sign-in that was being committed at the last look is found by the next one.
_SIGN_INS: Final = """
WITH clock AS MATERIALIZED (
    SELECT greatest((SELECT max(judged_at) FROM alert_watch) - interval '10 s',
                    db_now() - %(longest)s) AS since)
SELECT count(*)::int AS n FROM read_audit
 WHERE at > (SELECT since FROM clock) AND action = 'sign_in' AND outcome = 'done'
   AND reason = 'beside single sign-on'
"""

# What a failed look-up left open is passed over: the last word that was known stands. A record
# that never was usable is being set up, and nobody relies on it.
_TURNED: Final = """
SELECT r.domain, count(*) FILTER (WHERE known.verdict = 'fail' AND EXISTS (
           SELECT FROM sender_record u
            WHERE (u.domain, u.kind, u.selector) = (r.domain, r.kind, r.selector)
              AND u.verdict IN ('pass', 'warn')))::int AS records
  FROM sender_record r JOIN sender_domain s USING (domain)
  LEFT JOIN LATERAL (
      SELECT verdict FROM sender_record k
       WHERE (k.domain, k.kind, k.selector) = (r.domain, r.kind, r.selector)
         AND k.verdict <> 'unknown'
       ORDER BY k.first_seen_at DESC LIMIT 1) AS known ON true
 WHERE r.ended_at IS NULL AND s.checked_at > (SELECT db_now()) - %(within)s
 GROUP BY r.domain ORDER BY r.domain
"""


@dataclass(frozen=True, slots=True)
class Turned:
    """A sender domain, and how many of its records were usable and fail now."""

    domain: str
    records: int


def unsealed(connection: PooledConnection) -> bool:
    """Whether rows of the trail stand under no checkpoint."""
    row = connection.execute(_UNSEALED).fetchone()
    return bool(row and row["unsealed"])


def local_sign_ins(connection: PooledConnection) -> int:
    """How often a local account got somebody in past an issuer since the last look."""
    row = connection.execute(_SIGN_INS, {"longest": MISSED}).fetchone()
    return row["n"] if row else 0


def turned(connection: PooledConnection) -> tuple[Turned, ...]:
    """The sender domains with their records that stopped being usable; also those with none."""
    rows = connection.execute(_TURNED, {"within": CHECKED_WITHIN})
    return tuple(Turned(**row) for row in rows)
