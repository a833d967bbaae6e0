"""What a check of a sender domain found: the texts as observed, a verdict, and why, in words.

A failed look-up makes a finding unknown: never a pass, and by itself never a failure. What is
proven wrong beside it still fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from notifier.ports.dns import Answer, Found

LONGEST_TEXT: Final = 2000
"""Characters that are kept of one record."""
MOST_TEXTS: Final = 20
"""Records that are kept of one answer."""
LONGEST_QUOTE: Final = 80


class Kind(StrEnum):
    """What was looked at."""

    SPF = "spf"
    DKIM = "dkim"
    DMARC = "dmarc"
    ALIGNMENT = "alignment"
    """Whether our mail can pass DMARC under its From domain: follows from the others."""


class Verdict(StrEnum):
    """What it came to."""

    PASS = "pass"  # noqa: S105 - a word, not a password
    WARN = "warn"
    UNKNOWN = "unknown"
    FAIL = "fail"


_WEIGHT: Final = (Verdict.PASS, Verdict.WARN, Verdict.UNKNOWN, Verdict.FAIL)


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to say, and what it makes of the verdict."""

    verdict: Verdict
    words: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One record, or the want of it. Every text is printable ASCII, whatever DNS gave.

    `name` is what was asked for; `facts` are single values that were read off, by name.
    """

    kind: Kind
    name: str
    verdict: Verdict
    texts: tuple[str, ...]
    reasons: tuple[str, ...]
    facts: Mapping[str, str]
    selector: str = ""
    resolver: str = ""
    ttl_s: int | None = None

    @property
    def summary(self) -> str:
        """In one line, for a terminal."""
        of = f" {self.selector}" if self.selector else ""
        why = f" ({', '.join(self.reasons)})" if self.reasons else ""
        return f"{self.kind}{of} {self.verdict}{why}"


def finding(
    kind: Kind,
    name: str,
    answer: Answer,
    remarks: Sequence[Remark],
    facts: Mapping[str, str],
    *,
    texts: Iterable[str] = (),
) -> Finding:
    """A finding from one look-up; `texts` are those of the answer that belong to it."""
    return Finding(
        kind, name, worst(each.verdict for each in remarks),
        tuple(map(presented, texts))[:MOST_TEXTS], tuple(each.words for each in remarks),
        {key: presented(value) for key, value in facts.items()},
        resolver=answer.resolver, ttl_s=answer.ttl_s,
    )  # fmt: skip


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The heaviest; what nothing is said against passes."""
    return max(verdicts, key=_WEIGHT.index, default=Verdict.PASS)


def not_looked_up(name: str, answer: Answer) -> Remark:
    """What a failed look-up leaves to say."""
    return Remark(Verdict.UNKNOWN, f"{quoted(name)} could not be looked up: {answer.trouble}")


def failed(answer: Answer) -> bool:
    """Whether nothing can be concluded from this answer."""
    return answer.found is Found.FAILED


def presented(text: str) -> str:
    """A record's octets as zone files write them (RFC 1035, 5.1): printable ASCII, unambiguous."""
    kept = "".join(map(_octet, text[: LONGEST_TEXT + 1]))
    return kept if len(kept) <= LONGEST_TEXT else f"{kept[: LONGEST_TEXT - 3]}..."


def quoted(text: str) -> str:
    """Part of a record, short enough for a sentence."""
    kept = presented(text)
    return kept if len(kept) <= LONGEST_QUOTE else f"{kept[: LONGEST_QUOTE - 3]}..."


def _octet(each: str) -> str:
    if each == "\\":
        return "\\\\"
    return each if " " <= each <= "~" else f"\\{ord(each) & 255:03d}"


def tags_of(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The `name=value` pairs of a tag list (RFC 6376, 3.2) in order, and what is no pair."""
    pairs, odd = [], []
    for part in filter(None, (each.strip(" \t\r\n") for each in text.split(";"))):
        name, equals, value = part.partition("=")
        name = name.rstrip(" \t\r\n")
        if equals and name.isascii() and name.replace("_", "a").isalnum():
            pairs.append((name, value.strip(" \t\r\n")))
        else:
            odd.append(part)
    return pairs, odd
