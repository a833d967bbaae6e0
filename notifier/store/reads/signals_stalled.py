"""Open work that nobody carries on: leases that ran out, and what is claimed and never begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

WALKED: Final = 10_000
"""Open rows that one block looks at; more than this are as bad."""


@dataclass(frozen=True, slots=True)
class Leases:
    """Leases that ran out and were taken back by nobody; the longest time since (s)."""

    lapsed: int = 0
    oldest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Stuck:
    """Work that was claimed in vain and never begun; the longest such wait of a notice (s)."""

    stuck: int = 0
    oldest_s: float = 0.0


_LEASES: Final = """
    SELECT count(*) AS lapsed,
           coalesce(extract(epoch FROM db_now() - min(lease_until)), 0)::float8 AS oldest_s
      FROM (SELECT lease_until FROM delivery
             WHERE lease_owner IS NOT NULL AND lease_until < (SELECT db_now())
             ORDER BY lease_until LIMIT %(walked)s) AS lapsed
"""

# A rescue makes work due anew, so its age is that of the step that first put it into the queue.
# What was refused its link is stuck between two tries as well: else each back-off would read as
# the end of the trouble; and where the text takes over, it has waited since its email did.
_STUCK: Final = """
    SELECT count(*) FILTER (WHERE o.channel = d.channel) AS stuck,
           coalesce(extract(epoch FROM db_now() - min(t.recorded_at)), 0)::float8 AS oldest_s
      FROM (SELECT notice_id, channel FROM delivery
             WHERE state = 'queued' AND attempts = 0
               AND (link_tries > 0 OR fence > 1 AND due_at <= (SELECT db_now()))
               AND stop_at > (SELECT db_now())
             UNION ALL
            SELECT notice_id, channel FROM delivery
             WHERE lease_owner IS NOT NULL AND state = 'claimed' AND fence > 1 AND attempts = 0
             LIMIT %(walked)s) AS d
      JOIN delivery o ON o.notice_id = d.notice_id
           AND (o.channel = d.channel OR o.link_tries > 0 AND o.attempts = 0)
      CROSS JOIN LATERAL (
          SELECT max(recorded_at) AS recorded_at FROM transition t
           WHERE t.notice_id = o.notice_id AND t.channel = o.channel AND t.to_state = 'queued'
             AND coalesce(t.from_state, 'standby') = 'standby') AS t
"""


def leases(connection: PooledConnection) -> Leases:
    """The leases that nobody took back."""
    row = connection.execute(_LEASES, {"walked": WALKED}).fetchone()
    return Leases(**row) if row else Leases()


def stuck(connection: PooledConnection) -> Stuck:
    """The work that is claimed and never begun."""
    row = connection.execute(_STUCK, {"walked": WALKED}).fetchone()
    return Stuck(**row) if row else Stuck()
