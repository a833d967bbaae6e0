"""What was done in a rehearsal, by whom and when, and how it went."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from notifier.domain.states import Channel
from notifier.rehearsal.notice import Notice, Row

REQUESTED_AT: Final = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
"""When every rehearsed reset is requested."""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that somebody did, so that the same can be done to the real ledger."""

    at: datetime
    name: str
    channel: Channel | None = None
    number: int = 0
    what: Any = None


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """How it went. `notice` is as it stood at the end; `acts` in the order of the clock."""

    notice: Notice
    acts: tuple[Act, ...]

    @property
    def trail(self) -> list[Row]:
        """The rows as they were written."""
        return self.notice.trail
