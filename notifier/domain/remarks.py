"""What an operator may write beside an act: short, one line, and nobody's address or number.

A remark goes onto the trail, which is never rewritten, so what must be erasable one day has to
stay out of it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

LONGEST: Final = 200

_ALLOWED: Final = re.compile(r"[^\W_](?:[\w .,;:()#/'\"+?!%&=-])*")
_DATE: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_NUMBER: Final = re.compile(r"(?<![A-Za-z0-9])\+?\(?\d(?:[ ().-]{0,2}\d){6,}(?![A-Za-z0-9])")

WANTED: Final = (
    f"1 to {LONGEST} letters, digits and simple marks in one line, beginning with a letter or "
    "digit; no address, no phone number, no link"
)


class Evidence(StrEnum):
    """What somebody found out about an outcome that we cannot prove."""

    PROVIDER_SAYS_SENT = "provider_says_sent"
    PROVIDER_SAYS_NOT_SENT = "provider_says_not_sent"
    PERSON_HAS_IT = "person_has_it"
    PERSON_LACKS_IT = "person_lacks_it"
    OTHER = "other"


class RemarkUnfit(ValueError):
    """The text cannot be kept; `WANTED` says what can."""


def check_remark(text: str) -> str:
    """The text without room around it. Raises `RemarkUnfit`."""
    tidy = text.strip()
    fits = len(tidy) <= LONGEST and _ALLOWED.fullmatch(tidy) and "://" not in tidy
    if not fits or _NUMBER.search(_DATE.sub("", tidy)):
        raise RemarkUnfit(WANTED)
    return tidy
