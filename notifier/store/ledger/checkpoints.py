"""What the next checkpoint has to cover, and its writing: once, whoever else does the same.

What is still to be covered is told by the numbers of the transactions that wrote the rows,
never by their times: a transaction that commits late carries an early time, and a cut by time
would pass it by for good. Below the oldest number that was running when the cut was taken all
have ended, so nothing can appear there any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg

Row = dict[str, Any]

NEXT: Final = """
SELECT coalesce(last.number, 0) + 1 AS number, last.hash AS previous, clock.now,
       coalesce(last.cut, '0')::text AS since,
       pg_snapshot_xmin(clock.seen)::text AS ended_below,
       pg_snapshot_xmax(clock.seen)::text AS none_from,
       coalesce(last.cut > pg_snapshot_xmin(clock.seen), false) AS counts_anew,
       coalesce(NOT last.complete OR last.made_at <= clock.now - %(every)s, true) AS is_due
  FROM (SELECT db_now() AS now, pg_current_snapshot() AS seen) clock
  LEFT JOIN LATERAL (SELECT * FROM checkpoint ORDER BY number DESC LIMIT 1) last ON true
"""

# A head that an earlier checkpoint has is left out, because the cut may lie well below it.
CHANGED: Final = """
SELECT c.notice_id, c.seq, t.hash AS head
  FROM (SELECT notice_id, max(seq) AS seq FROM transition
         WHERE written_in >= %(since)s::xid8 AND written_in < %(until)s::xid8
         GROUP BY notice_id) c
  JOIN transition t USING (notice_id, seq)
 WHERE NOT EXISTS (SELECT FROM checkpoint_head h
                    WHERE h.notice_id = c.notice_id AND h.seq >= c.seq)
 ORDER BY c.notice_id LIMIT %(limit)s
"""

# Of several that were made after the same one, the number lets the first through.
WRITE: Final = """
WITH made AS (
    INSERT INTO checkpoint (number, made_at, previous, head_count, heads_digest, key_id,
                            signature, hash, cut, complete)
    VALUES (%(number)s, %(made_at)s, %(previous)s, %(head_count)s, %(heads_digest)s, %(key_id)s,
            %(signature)s, %(hash)s, %(cut)s::xid8, %(complete)s)
    ON CONFLICT DO NOTHING
    RETURNING number),
    sealed AS (
        INSERT INTO checkpoint_head (number, notice_id, seq, head)
        SELECT made.number, h.notice_id, h.seq, h.head
          FROM made CROSS JOIN unnest(%(notice_ids)s::uuid[], %(seqs)s::integer[],
                                      %(heads)s::bytea[]) AS h (notice_id, seq, head))
SELECT number FROM made
"""

FROM_THE_FIRST: Final = "0"
TO_THE_LAST: Final = str(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Due:
    """A checkpoint to be made: its number, what it follows, and the transactions to read."""

    number: int
    previous: bytes | None
    now: datetime
    since: str
    until: str
    cut: str
    last_cut: str


@dataclass(frozen=True, slots=True)
class Head:
    """The end of one notice's chain."""

    notice_id: UUID
    seq: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint as it is stored."""

    number: int
    made_at: datetime
    previous: bytes
    head_count: int
    heads_digest: bytes
    key_id: str
    signature: bytes
    hash: bytes


def next_due(connection: psycopg.Connection[Row], every: timedelta) -> Due | None:
    """The checkpoint to make now; None while the last one is younger than `every`.

    A last one that had to leave heads out is followed at once.
    """
    row = connection.execute(NEXT, {"every": every}).fetchone()
    if row is None or not row["is_due"]:
        return None
    since, until = row["since"], row["none_from"]
    if row["counts_anew"]:
        # The database was moved to a cluster that counts from below: read everything, once.
        since, until = FROM_THE_FIRST, TO_THE_LAST
    return Due(
        number=row["number"],
        previous=row["previous"],
        now=row["now"],
        since=since,
        until=until,
        cut=row["ended_below"],
        last_cut=row["since"],
    )


def changed(connection: psycopg.Connection[Row], due: Due, limit: int) -> list[Head]:
    """Up to `limit` heads that no checkpoint has, in the order of the notices' ids."""
    values = {"since": due.since, "until": due.until, "limit": limit}
    # Not prepared: only with the numbers at hand does the planner see how little it is.
    rows = connection.execute(CHANGED, values, prepare=False)
    return [Head(**row) for row in rows]


def write(
    connection: psycopg.Connection[Row],
    made: Checkpoint,
    heads: Sequence[Head],
    due: Due,
    *,
    complete: bool,
) -> bool:
    """Store a checkpoint with its heads; False where another one has this number by now."""
    values = {name: getattr(made, name) for name in Checkpoint.__slots__}
    values |= {
        "cut": due.cut if complete else due.last_cut,
        "complete": complete,
        "notice_ids": [each.notice_id for each in heads],
        "seqs": [each.seq for each in heads],
        "heads": [each.head for each in heads],
    }
    return connection.execute(WRITE, values).fetchone() is not None
