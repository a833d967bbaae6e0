"""Pages by key: a place in the order and a direction, never a row count.

The key ends in the row's own id, so rows with equal times are neither skipped nor repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

COUNT_CAP: Final = 10_000
"""Counting stops here; a page then says "more than"."""

Row = TypeVar("Row")
Found = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Start after this key (`forward`) or end before it.

    `upto` is when the first page was read: what came to be later is left out and counted apart,
    so that the pages behind it do not shift.
    """

    at: datetime
    row_id: str
    forward: bool = True
    upto: datetime | None = None


@dataclass(frozen=True, slots=True)
class Walk:
    """How far and from where a list is read; `upto` as in `Cursor`, None on the first page."""

    size: int = 50
    cursor: Cursor | None = None
    upto: datetime | None = None

    @property
    def forward(self) -> bool:
        """Whether the list is read in its own order."""
        return self.cursor is None or self.cursor.forward

    def words(self, *, descending: bool = False) -> tuple[str, str]:
        """The comparison and the order of a statement that walks the list this way."""
        return ("<", "DESC") if self.forward is descending else (">", "ASC")

    def cut(
        self,
        found: Sequence[Found],
        key: Callable[[Found], tuple[datetime, str]],
        now: datetime | None = None,
    ) -> tuple[list[Found], Cursor | None, Cursor | None]:
        """The rows to show in the list's order and the cursors around them.

        `found` holds up to `size` + 1 rows in walking order, read not before `now`.
        """
        upto = self.upto or now
        more, kept = len(found) > self.size, list(found[: self.size])
        if not self.forward:
            kept.reverse()
        if not kept:
            return [], None, None
        has_earlier = self.cursor is not None if self.forward else more
        has_later = more if self.forward else True
        earlier = Cursor(*key(kept[0]), forward=False, upto=upto) if has_earlier else None
        later = Cursor(*key(kept[-1]), forward=True, upto=upto) if has_later else None
        return kept, earlier, later


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows in the list's order; a cursor is None where nothing lies in that direction.

    `fresh` counts what came to be after the first page was read, at `since`.
    """

    rows: tuple[Row, ...]
    earlier: Cursor | None
    later: Cursor | None
    total: int
    total_is_capped: bool
    as_of: datetime
    fresh: int = 0
    since: datetime | None = None


def capped(count: Any) -> tuple[int, bool]:
    """The number to show, and whether counting stopped there."""
    number = int(count)
    return min(number, COUNT_CAP), number > COUNT_CAP
