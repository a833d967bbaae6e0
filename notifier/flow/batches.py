"""Works through a sweep's notices one by one, so that none of them can hold the others up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from notifier.flow.desk import Desk
from notifier.store.database import PooledConnection
from notifier.store.ledger.book import Book

PATIENCE_MS: Final = 250
"""How long a sweep, or a callback, waits for whoever holds a notice: others are due as well."""


def each_notice(
    desk: Desk,
    connection: PooledConnection,
    notice_ids: Iterable[UUID],
    write: Callable[[Book], None] = lambda _: None,
) -> int:
    """Open each book, let `write` write into it; returns how many notices were looked at.

    A notice that cannot be worked on (its row is locked by somebody, its rows contradict each
    other) is left for the next run, and the others get their turn; then the first error is
    raised, so that the sweep shows as failing. A connection that broke ends the batch at once.
    """
    trouble: Exception | None = None
    looked_at = 0
    for notice_id in notice_ids:
        looked_at += 1
        try:
            with desk.open_on(connection, notice_id, patience_ms=PATIENCE_MS) as book:
                write(book)
        except Exception as error:
            if connection.closed:
                raise
            trouble = trouble or error
    if trouble is not None:
        raise trouble
    return looked_at
