"""The trail read from its beginning to its end, in one snapshot and in constant memory.

Everything comes in the order of the notices' ids, through cursors of the server, so that
what belongs to one notice can be put side by side without holding more than that.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

Row = dict[str, Any]

FETCHED_AT_ONCE: Final = 1000

# A whole trail takes minutes, and whoever reads the output may be slow.
SNAPSHOT: Final = """
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0
"""

EVERYTHING: Final = "true"

# `{scope}`: a condition on notice_id.
ROWS: Final = """
SELECT t.notice_id, t.seq, t.recorded_at, t.occurred_at, t.event_id, t.reset_request_id,
       t.correlation_id, t.channel, t.attempt, t.actor, t.from_state, t.to_state, t.reason,
       t.detail, t.provider, t.provider_ref, t.receipt_id, t.remaining_us, t.template_revision,
       t.policy_revision, t.evidence::text AS evidence, t.prev_hash, t.hash
  FROM transition t WHERE {scope} ORDER BY t.notice_id, t.seq
"""


@contextmanager
def snapshot(connection: PooledConnection) -> Iterator[None]:
    """One unchanging view of the database for everything read inside, without time limits."""
    with connection.transaction():
        connection.execute(SNAPSHOT)
        yield


def stream(connection: PooledConnection, name: str, query: str, **values: Any) -> Iterator[Row]:
    """The rows of `query`, a batch at a time; `name` is the cursor's, one of its own."""
    with connection.cursor(name=name) as cursor:
        cursor.itersize = FETCHED_AT_ONCE
        cursor.execute(query, values)
        yield from cursor


def by_notice(*streams: Iterable[Row]) -> Iterator[tuple[UUID, list[list[Row]]]]:
    """Each notice with its rows out of each stream; all must be ordered by `notice_id`."""
    marked = (_marked(place, rows) for place, rows in enumerate(streams))
    merged = heapq.merge(*marked, key=lambda each: each[:2])
    for notice_id, group in groupby(merged, key=lambda each: each[0]):
        found: list[list[Row]] = [[] for _ in streams]
        for _, place, row in group:
            found[place].append(row)
        yield notice_id, found


def _marked(place: int, rows: Iterable[Row]) -> Iterator[tuple[UUID, int, Row]]:
    for row in rows:
        yield row["notice_id"], place, row


def written(at: datetime) -> str:
    """A time as exports spell it: RFC 3339, UTC, always six digits of a second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
