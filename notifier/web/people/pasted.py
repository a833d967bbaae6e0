"""What a person meant who pasted more than an id, an address or a number.

Only what surrounds the thing is taken off: quotes and brackets, a full stop, a label, a name
before an address, the rest of one of our own addresses. Nothing is completed or corrected.
"""

from __future__ import annotations

import re
from typing import Final

_AROUND: Final = " \t\"'`“”„‘’«»<>()[]{},;.:!?"  # noqa: RUF001 - quotes as people paste them
_SCHEME: Final = re.compile(r"(?:mailto|tel|sms):", re.IGNORECASE)
_LABEL: Final = re.compile(
    r"(?:help[ -]?desk )?(?:ticket|case|event|(?:reset )?request|account|notice|id)"
    r"(?: id)?[ #:=]+",
    re.IGNORECASE,
)
_OURS: Final = re.compile(r"https?://[^/?#\s]+/[ntera]/([A-Za-z0-9._:-]{1,128})(?:[/?#]\S*)?")
_NAMED: Final = re.compile(r"[^<>@]*<([^<>@\s]+@[^<>@\s]+)>")
_NUMBER: Final = re.compile(r"[+0-9 ().\-]{6,}")


def meant(text: str) -> str:
    """The thing alone; `text` itself where nothing surrounds it."""
    address = _OURS.fullmatch(text)
    if address:
        return address[1]
    named = _NAMED.fullmatch(text)
    bare = named[1] if named else text
    bare = _SCHEME.sub("", bare.strip(_AROUND), count=1)
    if _NUMBER.fullmatch(bare) and "+" in bare:
        return bare[bare.index("+") :].replace("(0)", "").replace("(", "").replace(")", "")
    return _LABEL.sub("", bare, count=1).lstrip("#").strip(_AROUND) or text
