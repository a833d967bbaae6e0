"""Keeps what was observed about sender domains: what is due, and each change as a row of its own.

A record that is seen again as it was only grows older; one that differs ends the row before it.
Nothing of this stands on the trail: it is evidence about domains, not about notices.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
import uuid_utils
from psycopg.types.json import Jsonb

Row = dict[str, Any]
Connection = psycopg.Connection[Row]

REGISTER: Final = """
INSERT INTO sender_domain (domain, due_at)
SELECT domain, db_now() FROM unnest(%(domains)s::text[]) AS domain
ON CONFLICT DO NOTHING
"""

# The push is the claim: a process that dies after it costs one check.
CLAIM: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    due AS MATERIALIZED (
        SELECT s.domain FROM sender_domain s, clock
         WHERE s.domain = ANY (%(domains)s) AND s.due_at <= clock.now
         ORDER BY s.due_at, s.domain LIMIT 1 FOR UPDATE OF s SKIP LOCKED)
UPDATE sender_domain s SET due_at = clock.now + make_interval(secs => %(every_s)s)
  FROM due, clock WHERE s.domain = due.domain
RETURNING s.domain
"""
QUEUE: Final = """
UPDATE sender_domain SET due_at = least(due_at, clock.now), asked_at = clock.now, asked_by = %(by)s
  FROM (SELECT db_now() AS now) AS clock
 WHERE domain = %(domain)s
RETURNING domain
"""
LOCK: Final = """
UPDATE sender_domain SET checked_at = db_now() WHERE domain = %(domain)s RETURNING checked_at AS now
"""

# The time to live runs down between two looks, and the resolver may be another: no change.
AGAIN: Final = """
UPDATE sender_record
   SET last_seen_at = %(now)s, checks = checks + 1, ttl_s = %(ttl_s)s, resolver = %(resolver)s
 WHERE domain = %(domain)s AND kind = %(kind)s AND selector = %(selector)s AND ended_at IS NULL
   AND name = %(name)s AND verdict = %(verdict)s AND texts = %(texts)s::text[]
   AND reasons = %(reasons)s::text[] AND facts = %(facts)s
"""
END: Final = """
UPDATE sender_record SET ended_at = %(now)s
 WHERE domain = %(domain)s AND kind = %(kind)s AND selector = %(selector)s AND ended_at IS NULL
"""
BEGIN: Final = """
INSERT INTO sender_record (record_id, domain, kind, selector, name, verdict, texts, reasons, facts,
                           resolver, ttl_s, first_seen_at, last_seen_at)
VALUES (%(record_id)s, %(domain)s, %(kind)s, %(selector)s, %(name)s, %(verdict)s, %(texts)s,
        %(reasons)s, %(facts)s, %(resolver)s, %(ttl_s)s, %(now)s, %(now)s)
"""

# A selector that is no longer named is no longer looked for.
END_OTHERS: Final = """
UPDATE sender_record SET ended_at = %(now)s
 WHERE domain = %(domain)s AND kind = 'dkim' AND NOT selector = ANY (%(selectors)s)
   AND ended_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class Observed:
    """One record as it was seen; all texts printable."""

    kind: str
    selector: str
    name: str
    verdict: str
    texts: Sequence[str]
    reasons: Sequence[str]
    facts: Mapping[str, str]
    resolver: str
    ttl_s: int | None


def register(connection: Connection, domains: Sequence[str]) -> None:
    """Know these domains; new ones are due at once."""
    connection.execute(REGISTER, {"domains": list(domains)})


def claim(connection: Connection, domains: Sequence[str], *, every_s: float) -> str | None:
    """Take up the one of these that is due longest; it is due again after `every_s`."""
    values = {"domains": list(domains), "every_s": every_s}
    row = connection.execute(CLAIM, values).fetchone()
    return None if row is None else str(row["domain"])


def queue(connection: Connection, domain: str, by: str) -> bool:
    """Let a domain be due at once; False where nobody knows it."""
    values = {"domain": domain, "by": by}
    return connection.execute(QUEUE, values).fetchone() is not None


def keep(connection: Connection, domain: str, observed: Sequence[Observed]) -> int:
    """Write one check down, whole; how many records are other than they were."""
    with connection.transaction():
        row = connection.execute(LOCK, {"domain": domain}).fetchone()
        if row is None:
            return 0
        changed = sum(_keep(connection, domain, row["now"], each) for each in observed)
        selectors = [each.selector for each in observed if each.kind == "dkim"]
        values = {"domain": domain, "now": row["now"], "selectors": selectors}
        connection.execute(END_OTHERS, values)
    return changed


def _keep(connection: Connection, domain: str, now: object, seen: Observed) -> bool:
    values = {
        "record_id": uuid.UUID(bytes=uuid_utils.uuid7().bytes),
        "domain": domain,
        "now": now,
        "kind": seen.kind,
        "selector": seen.selector,
        "name": seen.name,
        "verdict": seen.verdict,
        "texts": list(seen.texts),
        "reasons": list(seen.reasons),
        "facts": Jsonb(dict(seen.facts)),
        "resolver": seen.resolver,
        "ttl_s": seen.ttl_s,
    }
    if connection.execute(AGAIN, values).rowcount:
        return False
    connection.execute(END, values)
    connection.execute(BEGIN, values)
    return True
