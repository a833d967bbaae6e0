"""The place in its trail at which a notice stands: what a form carries and an act is checked by."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from notifier.store.database import PooledConnection


def notice_version(connection: PooledConnection, notice_id: UUID) -> int | None:
    """The sequence of the newest step; None where there is no such notice.

    Read before whatever a decision rests on: should the notice move in between, the act is
    refused, and never done on a state that nobody saw.
    """
    row = connection.execute("SELECT seq FROM notice WHERE notice_id = %s", [notice_id]).fetchone()
    return row["seq"] if row else None
