"""Text that somebody outside wrote, made safe to stand beside ours.

Templates escape markup; what escaping does not stop is text that turns the reading direction,
hides, or never ends.
"""

from __future__ import annotations

import unicodedata
from typing import Final, overload

LONGEST: Final = 160
"""Characters that are shown of one value."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


@overload
def shown(text: str) -> str: ...
@overload
def shown(text: str | None) -> str | None: ...
def shown(text: str | None) -> str | None:
    """The text without control, direction and invisible characters, cut to a bounded length."""
    if text is None:
        return None
    kept = "".join(
        " " if unicodedata.category(each) in _HIDDEN else each for each in text[: 4 * LONGEST]
    )
    tidy = " ".join(kept.split())
    return tidy if len(tidy) <= LONGEST else f"{tidy[: LONGEST - 1]}…"
