"""Engages and releases halts behind one gate.

Intents take the gate shared, engaging takes it alone: when an engagement returns, every
earlier start is committed and listed as in flight, and no other can follow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg

Row = dict[str, Any]

GATE_SHARED: Final = "SELECT pg_advisory_xact_lock_shared(7205759403792793602)"
GATE_ALONE: Final = "SELECT pg_advisory_xact_lock(7205759403792793602)"

ENGAGE: Final = """
INSERT INTO halt (halt_id, scope, reason, engaged_by, engaged_at)
VALUES (%(halt_id)s, %(scope)s, %(reason)s, %(by)s, db_now())
ON CONFLICT (scope) WHERE released_at IS NULL DO NOTHING
"""

STANDING: Final = """
SELECT halt_id, scope, reason, engaged_by, engaged_at FROM halt
 WHERE released_at IS NULL AND (%(scope)s::text IS NULL OR scope = %(scope)s)
 ORDER BY engaged_at
"""

# In flight: a call without a recorded answer, the first one or its replay, or a lease that has
# not ended (design 11.7).
# A worker that was given up as lost may only be frozen, so that its call can still begin; so may
# that of a retry beside whose attempt a receipt told of the one before. After expiry none can.
# Begins at what is open: neither leases nor unanswered calls grow with what is over.
IN_FLIGHT: Final = """
SELECT d.notice_id, n.event_id, d.channel, d.state,
       coalesce(d.lease_owner, a.owner) AS lease_owner,
       coalesce(d.lease_until, a.deadline) AS lease_until, a.reference, a.started_at
  FROM (SELECT notice_id, channel FROM delivery WHERE lease_owner IS NOT NULL
         UNION
        SELECT notice_id, channel FROM attempt
         WHERE resolved_at IS NULL
           AND (NOT call_ended OR (replay_started_at IS NOT NULL AND replay_ended_at IS NULL))
       ) AS open
  JOIN delivery d USING (notice_id, channel) JOIN notice n USING (notice_id)
  LEFT JOIN attempt a ON a.notice_id = d.notice_id AND a.channel = d.channel
                     AND a.resolved_at IS NULL
 WHERE (d.lease_owner IS NOT NULL
        OR (d.state IN ('unknown', 'accepted', 'delivered') AND d.expires_at > (SELECT db_now())))
   AND CASE split_part(%(scope)s, ':', 1)
           WHEN 'all' THEN true
           WHEN 'channel' THEN d.channel = split_part(%(scope)s, ':', 2)
           WHEN 'provider' THEN d.provider = split_part(%(scope)s, ':', 2)
           WHEN 'template' THEN 'template:' || n.template_id || '@' || n.template_revision
                                = %(scope)s
           WHEN 'account' THEN 'account:' || n.account_id = %(scope)s
           WHEN 'event' THEN 'event:' || n.event_id = %(scope)s
           ELSE false END
 ORDER BY lease_until
"""

RELEASE: Final = """
UPDATE halt SET released_by = %(by)s, release_reason = %(reason)s, released_at = db_now()
 WHERE scope = %(scope)s AND released_at IS NULL
RETURNING halt_id
"""

RELEASE_ONE: Final = """
UPDATE halt SET released_by = %(by)s, release_reason = %(reason)s, released_at = db_now()
 WHERE halt_id = %(halt_id)s AND released_at IS NULL
"""

RELEASED_BY: Final = "SELECT released_by FROM halt WHERE halt_id = %(halt_id)s"


class StaleHalts(Exception):
    """Other halts stand than whoever decided on them had seen."""


@dataclass(frozen=True, slots=True)
class Halt:
    """A halt that stands."""

    halt_id: UUID
    scope: str
    reason: str
    engaged_by: str
    engaged_at: datetime


@dataclass(frozen=True, slots=True)
class InFlight:
    """Work that began before the halt and whose end is not known yet.

    The lease is the attempt's own owner and deadline where it was taken back already.
    """

    notice_id: UUID
    event_id: str
    channel: str
    state: str
    lease_owner: str
    lease_until: datetime
    reference: str | None
    started_at: datetime | None


def engage(
    connection: psycopg.Connection[Row],
    *,
    halt_id: UUID,
    scope: str,
    reason: str,
    by: str,
    version: str | None = None,
) -> tuple[Halt, list[InFlight]]:
    """Stop every start in `scope`; a halt that stands already is kept as it is.

    Returns it with what is still in flight. Nothing else starts once this has returned. With a
    `version` (see `version_of`), raises `StaleHalts` where other halts stand than it names, but
    for one of this very scope: what is wished for holds then.
    """
    values = {"halt_id": halt_id, "scope": scope, "reason": reason, "by": by}
    with connection.transaction():
        connection.execute(GATE_ALONE)
        before = standing(connection)
        if not any(each.scope == scope for each in before):
            _check_version(before, version)
        connection.execute(ENGAGE, values)
        halts = standing(connection, scope)
    return halts[0], in_flight(connection, scope)


def standing(connection: psycopg.Connection[Row], scope: str | None = None) -> list[Halt]:
    """The halts that stand, all of them or the one with `scope`, oldest first."""
    return [Halt(**row) for row in connection.execute(STANDING, {"scope": scope})]


def in_flight(connection: psycopg.Connection[Row], scope: str) -> list[InFlight]:
    """Leases and open calls under `scope`; the halt is in effect when the list is empty."""
    return [InFlight(**row) for row in connection.execute(IN_FLIGHT, {"scope": scope})]


def release(connection: psycopg.Connection[Row], *, scope: str, reason: str, by: str) -> bool:
    """Lift the halt with `scope`; False where none stands."""
    values = {"scope": scope, "reason": reason, "by": by}
    return connection.execute(RELEASE, values).fetchone() is not None


def release_one(
    connection: psycopg.Connection[Row], *, halt_id: UUID, reason: str, by: str, version: str
) -> bool:
    """Lift this halt; False where the same person has lifted it before.

    Raises `StaleHalts` where other halts stand than `version` names, or somebody else lifted it.
    """
    values = {"halt_id": halt_id, "reason": reason, "by": by}
    with connection.transaction():
        connection.execute(GATE_ALONE)
        released = connection.execute(RELEASED_BY, values).fetchone()
        if released is not None and released["released_by"] == by:
            return False
        _check_version(standing(connection), version)
        if connection.execute(RELEASE_ONE, values).rowcount == 0:
            raise StaleHalts
    return True


def version_of(halt_ids: Iterable[UUID]) -> str:
    """A short name for exactly these standing halts."""
    text = ",".join(sorted(map(str, halt_ids)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_version(halts: Iterable[Halt], version: str | None) -> None:
    if version is not None and version_of(each.halt_id for each in halts) != version:
        raise StaleHalts
