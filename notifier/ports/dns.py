"""What a check of the sender domains needs to ask: DNS, with failures told apart from absence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Found(StrEnum):
    """What a look-up came to. A failed one says nothing about the record."""

    PRESENT = "present"
    ABSENT = "absent"
    """NXDOMAIN, or the name exists without such a record."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """One look-up. `texts`: a record each, the octets of its strings joined, as Latin-1.

    `ttl_s` is what is left of the time to live (s); `resolver` the address that was asked last;
    `trouble` says in a word why it failed, None where it did not.
    """

    found: Found
    texts: tuple[str, ...] = ()
    ttl_s: int | None = None
    resolver: str = ""
    trouble: str | None = None


class Dns(Protocol):
    """Asks one resolver, within a bounded time in all."""

    def ask(self, name: str, kind: str) -> Answer:
        """Look up `kind` (TXT, A, AAAA, MX) of an absolute name. Never raises."""
        ...
