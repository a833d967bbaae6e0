"""What people may write beside an act: short, one line, and nobody's address or number.

Reasons of halts and policies, notes on alerts, evidence, why something was stopped or taken out:
all of it stands where many read it, some of it on the trail, which is never rewritten. So what
must be erasable one day has to stay out of it. The check stops what slips in, in any usual
spelling; whoever means to can always spell a number out in words.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Final

LONGEST: Final = 200
LONGEST_REASON: Final = 500
"""Characters: of a remark on one notice or alert, and of a reason that concerns everybody."""


def wanted(longest: int = LONGEST) -> str:
    """What can be kept, for hints and refusals."""
    return (
        f"1 to {longest} letters, digits and simple marks in one line, beginning with a letter or "
        "digit; no address, no phone number, no link"
    )


WANTED: Final = wanted()


class Evidence(StrEnum):
    """What somebody found out about an outcome that we cannot prove."""

    PROVIDER_SAYS_SENT = "provider_says_sent"
    PROVIDER_SAYS_NOT_SENT = "provider_says_not_sent"
    PERSON_HAS_IT = "person_has_it"
    PERSON_LACKS_IT = "person_lacks_it"
    OTHER = "other"


class RemarkUnfit(ValueError):
    """The text cannot be kept; the message names the field and the rule, never the text."""

    def __init__(self, field: str, fault: str, longest: int) -> None:
        super().__init__(f"the {field} {fault}; write {wanted(longest)}")

    @property
    def sentence(self) -> str:
        """The message as a sentence of a page."""
        text = str(self)
        return f"{text[0].upper()}{text[1:]}."


_MARKS: Final = frozenset(" .,;:()[]#/'\"+?!%&=_*~-<>@$€£°§×≤≥→–—…‘’“”")  # noqa: RUF001 - as typed
_OPENERS: Final = frozenset("#([\"'‘“")  # noqa: RUF001 - as typed
# A tag, or an address; `password-reset@1` is the revision of a template.
_MARKUP: Final = re.compile(r"<(?![ \d=])")
_AT: Final = re.compile(r"@(?!\d{1,4}(?![\w.]))")

_COMMON_ENDS: Final = (
    "com net org info biz edu gov int mil io co app dev cloud online site shop xyz me tv ai eu uk "
    "de fr nl be es pt it at ch pl cz se no dk fi ie us ca au nz in jp cn kr br mx za ru ua tr "
    "test example invalid local localhost internal"
)
# `mx.provider.example` and `example.com` are hosts, `e.g.` and `policy.toml` are none unless a
# path, a port or a question follows.
_LINK: Final = re.compile(
    rf"""://|\b(?:https?|ftp|mailto|tel|sms|sip):\S|\bwww\.
    |(?<![\w.-])(?:[\w-]+\.)+(?:
        [^\W\d_]{{2,}}(?:[/?\#&=]|:\d)\w?
        |(?<=\w\.)(?:{_COMMON_ENDS.replace(" ", "|")})(?![\w-])
    )
    |(?<![\w.-])(?:[\w-]{{2,}}\.){{2,}}[^\W\d_]{{2,}}(?![\w-])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HOST_NUMBER: Final = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")

_UUID: Final = r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
_DAY: Final = r"""
    \b(?:19|20)\d\d([-/.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?=\b|T\d)
    |\b(?:0?[1-9]|[12]\d|3[01])([/.-])(?:0?[1-9]|1[0-2])\2(?:19|20)\d\d\b"""
_TIME: Final = r"(?<![\d:])T?(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?(?![\d:])"
_ZONE: Final = r"(?<=[\dZ ])[+-](?:0\d|1[0-4]):?[0-5]\d(?!\d)"
_SHARE: Final = r"(?<![\w.])0\.\d{1,3}(?![\w.])"
_DAYS_AND_HOURS: Final = re.compile(
    "|".join((_UUID, _DAY, rf"{_TIME}(?:{_ZONE})?", _SHARE)), re.VERBOSE | re.IGNORECASE
)
# `HD-4711`, `INC0012345`, `#1234567`: a name and a number to it, or letters and digits in turns.
_WORD: Final = re.compile(r"#?[^\W_]+(?:[-_:.\#]+[^\W_]+)*")
_NAMED: Final = re.compile(r"([^\W\d_]{2,})[-_:.\#]*[\d:._-]+|\#[1-9]\d*")
_IN_TURNS: Final = re.compile(r"(?=(?:[\d_]*[^\W\d_]){4})(?!\w*\d{10})\w*\d\w*[^\W\d_]\w*")
_TELEPHONES: Final = frozenset(
    ("tel", "tele", "telephone", "phone", "ph", "mob", "mobile", "cell", "call", "fax", "sms")
)
_MOST_NAMED: Final = 8
"""Digits of a ticket's or an event's number."""

_PARTED: Final = re.compile(r"\+?\(?\d+(?:[^\w·]{1,3}\d+)*")
_NATIONAL: Final = re.compile(r"(?:\+|\b0)\d.*")
_NOT_IN_A_NUMBER: Final = re.compile(r"[^\d ().–-]+")  # noqa: RUF001 - as typed
_LISTED: Final = re.compile(r"[,;] ")
_FEWEST: Final = 7
"""Digits of a telephone number as they are usually parted; and with any mark between them:"""
_FEWEST_IN_MARKS: Final = 10


def check_remark(text: str, field: str = "remark", longest: int = LONGEST) -> str:
    """The text without room around it. Raises `RemarkUnfit`, which names the `field`."""
    tidy = text.strip()
    fault = _size_fault(tidy, longest) or _fault(tidy)
    if fault:
        raise RemarkUnfit(field, fault, longest)
    return unicodedata.normalize("NFC", tidy)


def check_reason(text: str) -> str:
    """As `check_remark`, for the reason of something that concerns everybody."""
    return check_remark(text, "reason", LONGEST_REASON)


def _size_fault(text: str, longest: int) -> str | None:
    if not text:
        return "is missing"
    return "is too long" if len(text) > longest else None


def _fault(text: str) -> str | None:
    # As a reader takes it: full-width and raised digits are digits.
    seen = unicodedata.normalize("NFKC", text)
    begins = seen[0].isalnum() or seen[0] in _OPENERS
    if not begins or not all(map(_may_stand, seen)) or _MARKUP.search(seen):
        return "has a mark that cannot be kept, or begins with one"
    if _AT.search(seen):
        return "holds an address"
    if _LINK.search(seen) or _HOST_NUMBER.search(seen):
        return "holds a link or the address of a host"
    bare = _WORD.sub(_without_id, _DAYS_AND_HOURS.sub("·", seen))
    if any(map(_is_number, _PARTED.findall(bare))):
        return "holds a phone number, or as many digits as one"
    return None


def _may_stand(character: str) -> bool:
    return character in _MARKS or unicodedata.category(character)[0] in "LMN"


def _without_id(word: re.Match[str]) -> str:
    text = word[0]
    named = _NAMED.fullmatch(text)
    is_telephone = named and (named[1] or "").lower() in _TELEPHONES
    if named and not is_telephone and _digits(text) <= _MOST_NAMED:
        return "·"
    return "·" if _IN_TURNS.fullmatch(text) else text


def _is_number(run: str) -> bool:
    """Whether digits with marks between them can be somebody's number."""
    return (
        any(_digits(each) >= _FEWEST for each in _NATIONAL.findall(run))
        or any(_digits(each) >= _FEWEST for each in _NOT_IN_A_NUMBER.split(run))
        or any(_digits(each) >= _FEWEST_IN_MARKS for each in _LISTED.split(run))
    )


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))
