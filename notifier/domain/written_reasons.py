"""The reason that somebody writes for an act: it says something, in a line of its own."""

from __future__ import annotations

from typing import Final

LONGEST_REASON: Final = 500
"""Characters."""

REASON_WANTED: Final = f"a reason of 1 to {LONGEST_REASON} printable characters is needed"


def is_reason(text: str) -> bool:
    """Whether `text` can stand as a reason."""
    return 0 < len(text.strip()) <= LONGEST_REASON and text.isprintable()
