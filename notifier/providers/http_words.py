"""What an HTTP provider's answer to a submit proves; the same table for all of them.

Only a refusal in the provider's own words proves that nothing was taken. A redirect, an
error of a server, and an error that somebody between us may have written leave the outcome
*unknown*: the request had been written when they came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, ProviderPause, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.json_objects import Document, document_of
from notifier.timed_http import HttpAnswer

SHORTEST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 3600.0
"""A provider may ask for a day; asking again after an hour costs one request."""


class About(Enum):
    """Whom a refusal is about, and so whether the next attempt can fare better."""

    MESSAGE = "this message or this recipient: final"
    US = "our account, sender or settings: stop for all"
    MOMENT = "neither: the same message may be taken later"


@dataclass(frozen=True, slots=True)
class Word:
    """One of the provider's words for a refusal."""

    detail: Detail
    about: About = About.MESSAGE


@dataclass(frozen=True, slots=True)
class Said:
    """A word with the provider's own code for it."""

    word: Word
    code: str


Taken = Callable[[Document], Accepted | Said | None]
Spoken = Callable[[int, Document], Said | None]


def judge(answer: HttpAnswer, taken: Taken, spoken: Spoken) -> Outcome:
    """Sort a whole answer to a submit.

    `taken` reads the document of a 2xx, `spoken` the one of any other status below 500; each
    gives None for what is not the provider's.
    """
    document = document_of(answer.body)
    if 200 <= answer.status < 300:
        found = taken(document) if document is not None else None
        if found is None:
            return Unknown(Reason.UNREADABLE_ANSWER, f"http_{answer.status}")
        return found if isinstance(found, Accepted) else refusal(found, answer)
    if answer.status >= 500 or document is None:
        return Unknown(Reason.GATEWAY_ERROR, f"http_{answer.status}")
    said = spoken(answer.status, document)
    return refusal(said, answer) if said else Unknown(Reason.GATEWAY_ERROR, f"http_{answer.status}")


def refusal(said: Said, answer: HttpAnswer) -> Refused | NotAccepted:
    """The outcome of a refusal in the provider's words."""
    detail = said.word.detail
    match said.word.about:
        case About.MESSAGE:
            return Refused(detail, said.code)
        case About.MOMENT:
            return NotAccepted(detail, said.code)
        case About.US:
            wait = asked_wait_s(answer.headers) if detail is Detail.RATE_LIMITED else None
            return NotAccepted(detail, said.code, ProviderPause(detail, wait))


def asked_wait_s(headers: Mapping[str, str]) -> float | None:
    """How long Retry-After asks to wait (RFC 9110, 10.2.3), within bounds; None if it does not.

    A date is read against the answer's own Date, so that a clock of theirs that is wrong
    changes nothing.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:12])
    else:
        until, since = _date(text), _date(headers.get("date", "")) or datetime.now(UTC)
        if until is None:
            return None
        seconds = (until - since).total_seconds()
    return min(max(seconds, SHORTEST_WAIT_S), LONGEST_WAIT_S)


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
