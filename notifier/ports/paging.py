"""What the alert path needs to tell a person: a page, and somebody who takes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Urgency(StrEnum):
    """Whether something began or ended."""

    TROUBLE = "trouble"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Page:
    """A title and a text of plain lines. Holds neither secrets nor personal data (P7)."""

    title: str
    text: str
    urgency: Urgency


class Receiver(Protocol):
    """One address that pages go to, which is itself a secret."""

    @property
    def name(self) -> str:
        """A word for the address that gives nothing of it away; the same in all processes."""
        ...

    def take(self, page: Page) -> str | None:
        """Send it once, within a bounded time; None when taken, else a word for the trouble."""
        ...
