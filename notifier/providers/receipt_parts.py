"""What of a provider's words may enter a receipt: short, of a known shape, or not at all.

A word that is not of its shape is dropped, because it could be anything: an address, a
number, a text. Whoever reads a provider's document takes its members through here.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

_REFERENCE: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_MESSAGE_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z_]{1,32}", re.ASCII)
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""At the ends of the calendar a time cannot be shown in every zone."""
_CODE: Final = re.compile(r"[0-9]{1,6}", re.ASCII)


def reference(value: Any) -> str | None:
    """One of our attempt references, as the provider echoes it."""
    return _shaped(_REFERENCE, value)


def message_id(value: Any) -> str | None:
    """A provider's own id of a message."""
    return _shaped(_MESSAGE_ID, value)


def word(value: Any) -> str | None:
    """A word of a provider's vocabulary: letters alone, so that no number can pass for one."""
    return _shaped(_WORD, value)


def code(value: Any) -> str | None:
    """A provider's numeric code, given as a number or as its digits; too short for a phone's."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _shaped(_CODE, str(value))
    return _shaped(_CODE, value)


def iso_time(value: Any) -> datetime | None:
    """An ISO time of this century with an offset, in UTC; digits beyond microseconds are cut."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        return _aware(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return None


def mail_time(value: Any) -> datetime | None:
    """An RFC 2822 time of this century with an offset, in UTC."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        return _aware(parsedate_to_datetime(value))
    except (ValueError, OverflowError):
        return None


def identity(*parts: str | None) -> bytes:
    """A digest of what makes a receipt the same one when it is told again."""
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _shaped(shape: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and shape.fullmatch(value) else None


def _aware(found: datetime) -> datetime | None:
    moment = found.astimezone(UTC) if found.tzinfo else None
    return moment if moment and _EARLIEST <= moment < _LATEST else None
