"""The other notices of the same account, newest first: what came before, what came after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from notifier.store.reads.notice_rows import NoticeRow, rows_of

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

MOST: Final = 5

_RELATED: Final = """
    SELECT notice_id FROM admission
     WHERE account_id = %s AND notice_id <> %s
     ORDER BY requested_at DESC LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Related:
    """The newest others; `more` when there are further ones."""

    rows: tuple[NoticeRow, ...]
    more: bool


def load_related(connection: PooledConnection, notice_id: UUID, account_id: str) -> Related:
    """Of this account, without the notice itself."""
    found = connection.execute(_RELATED, [account_id, notice_id, MOST + 1]).fetchall()
    rows = rows_of(connection, [each["notice_id"] for each in found[:MOST]])
    return Related(rows, len(found) > MOST)
