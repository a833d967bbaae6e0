"""The policy revisions: who kept which, when and why, and what is still decided by each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.store.reads.outside_text import shown
from notifier.store.reads.paging import COUNT_CAP

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One revision. `document` as it was stored; `before` is the one before it, None for the first.

    `open_notices` follow it still; counting stops at `COUNT_CAP` + 1.
    """

    revision: int
    document: Mapping[str, Any]
    before: Mapping[str, Any] | None
    digest: str
    author: str
    reason: str
    created_at: datetime
    open_notices: int


@dataclass(frozen=True, slots=True)
class History:
    """Revisions, the newest first; `older` is where to go on, None at the first one."""

    rows: tuple[RevisionRow, ...]
    older: int | None
    newest: int
    as_of: datetime


@dataclass(frozen=True, slots=True)
class PinnedNotice:
    """An open notice that a revision decides on."""

    notice_id: UUID
    event_id: str
    expires_at: datetime


# Open notices alone: they are few, and the others are decided.
_ROWS: Final = f"""
    SELECT r.revision, r.document, before.document AS before, encode(r.digest, 'hex') AS digest,
           r.author, r.reason, r.created_at,
           (SELECT count(*)::int FROM (SELECT FROM notice n
                WHERE n.policy_revision = r.revision
                  AND n.state IN ('email_pending', 'text_pending')
                LIMIT {COUNT_CAP + 1}) AS pinned) AS open_notices
      FROM policy_revision r
      LEFT JOIN policy_revision before ON before.revision = r.revision - 1
"""
_HISTORY: Final = f"""
    {_ROWS} WHERE %(before)s::integer IS NULL OR r.revision < %(before)s
     ORDER BY r.revision DESC LIMIT %(size)s
"""
_ONE: Final = f"{_ROWS} WHERE r.revision = %(revision)s"
_CLOCK: Final = """
    SELECT db_now() AS as_of, (SELECT max(revision) FROM policy_revision) AS newest
"""
_PINNED: Final = f"""
    SELECT notice_id, event_id, expires_at FROM notice
     WHERE state IN ('email_pending', 'text_pending') AND policy_revision = %(revision)s
     ORDER BY expires_at, notice_id LIMIT {EXAMPLES}
"""
_LIFE: Final = "SELECT life_s FROM alert_watch WHERE life_s > 0"


class NoRevision(LookupError):
    """No policy revision is stored at all, at the database's time `as_of`."""

    def __init__(self, as_of: datetime) -> None:
        super().__init__("no policy revision is stored")
        self.as_of = as_of


def load_history(
    connection: PooledConnection, size: int = 25, before: int | None = None
) -> History:
    """The newest revisions, or those before one of them. Raises `NoRevision`."""
    now = connection.execute(_CLOCK).fetchone()
    assert now is not None  # noqa: S101 - a row without a table
    if now["newest"] is None:
        raise NoRevision(now["as_of"])
    found = connection.execute(_HISTORY, {"before": before, "size": size + 1}).fetchall()
    rows = tuple(map(_row, found[:size]))
    return History(rows, rows[-1].revision if len(found) > size else None, **now)


def load_revision(connection: PooledConnection, revision: int) -> RevisionRow | None:
    """One revision; None where there is none with that number."""
    row = connection.execute(_ONE, {"revision": revision}).fetchone()
    return None if row is None else _row(row)


def load_pinned(connection: PooledConnection, revision: int) -> tuple[PinnedNotice, ...]:
    """The open notices that a revision decides on and that end first."""
    return tuple(PinnedNotice(**row) for row in connection.execute(_PINNED, {"revision": revision}))


def learnt_life_s(connection: PooledConnection) -> float | None:
    """The life of a token (s) as the alert rules learnt it; None where they did not yet."""
    row = connection.execute(_LIFE).fetchone()
    return None if row is None else float(row["life_s"])


def _row(row: Mapping[str, Any]) -> RevisionRow:
    told = {"author": shown(row["author"]), "reason": _whole(row["reason"])}
    return RevisionRow(**{**row, **told})


def _whole(reason: str) -> str:
    """A reason is ours and was checked when it was given: it is not cut."""
    return " ".join(reason.split())
