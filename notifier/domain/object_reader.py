"""Reads one JSON object member by member and collects every fault on the way.

A fault names the place (JSON pointer, RFC 6901) and a code, never a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from notifier.domain.event import is_id

RFC3339_PATTERN: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]{1,9})?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_RFC3339 = re.compile(RFC3339_PATTERN)
_SHOWN_NAME = re.compile(r"[A-Za-z_]{1,32}")
_SHOWN_NAMES = 20

MISSING: Final = object()
"""A member that the object does not have."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One fault: where (JSON pointer, `""` for the whole document) and what.

    `parameter` and `header` name what is at fault outside the document; `limit` is what would
    have been taken, in seconds.
    """

    pointer: str
    code: str
    parameter: str | None = None
    header: str | None = None
    limit: float | None = None


def read_time(value: object) -> datetime | None:
    """An RFC 3339 time with an offset as UTC, or None; beyond microseconds it is cut off."""
    if not isinstance(value, str) or _RFC3339.fullmatch(value) is None:
        return None
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@dataclass(slots=True)
class ObjectReader:
    """One JSON object being read; what is never asked for is an unknown field."""

    members: Mapping[str, Any]
    pointer: str
    problems: list[FieldProblem]
    asked: set[str] = field(default_factory=set)

    def fault(self, name: str, code: str) -> None:
        """Note a fault of the member `name`."""
        self.problems.append(FieldProblem(f"{self.pointer}/{name}", code))

    def take(self, name: str, *, required: bool = False) -> object:
        """The member as it is, or `MISSING`."""
        self.asked.add(name)
        value = self.members.get(name, MISSING)
        if required and value is MISSING:
            self.fault(name, "required")
        return value

    def text(self, name: str, *, required: bool = False) -> str | None:
        """A string member; None where it is missing or refused, as in all that follow."""
        value = self.take(name, required=required)
        if value is MISSING:
            return None
        if not isinstance(value, str):
            self.fault(name, "not_a_string")
            return None
        return value

    def matching(
        self, name: str, sound: Callable[[str], object], code: str, *, required: bool = False
    ) -> str | None:
        """A string member that is `sound`; else a fault with `code`."""
        value = self.text(name, required=required)
        if value is not None and not sound(value):
            self.fault(name, code)
            return None
        return value

    def id(self, name: str, *, required: bool = False) -> str | None:
        """An id from outside."""
        return self.matching(name, is_id, "not_an_id", required=required)

    def time(self, name: str) -> datetime | None:
        """A required RFC 3339 time with an offset, as UTC."""
        value = self.take(name, required=True)
        if value is MISSING:
            return None
        moment = read_time(value)
        if moment is None:
            self.fault(name, "not_an_rfc3339_time_with_offset")
        return moment

    def flag(self, name: str) -> bool | None:
        """A boolean member: neither 1 nor "true" nor null is one."""
        value = self.take(name)
        if value is MISSING or isinstance(value, bool):
            return value if isinstance(value, bool) else None
        self.fault(name, "not_a_boolean")
        return None

    def object(self, name: str, *, required: bool = False) -> ObjectReader:
        """A reader of an object member; an empty one where it is missing or refused."""
        value = self.take(name, required=required)
        if value is not MISSING and not isinstance(value, Mapping):
            self.fault(name, "not_an_object")
        if not isinstance(value, Mapping):
            return ObjectReader({}, f"{self.pointer}/{name}", [])
        return ObjectReader(value, f"{self.pointer}/{name}", self.problems)

    def close(self) -> None:
        """Report what was not asked for.

        The name of an unknown field is the sender's text, so only one that looks like a field
        name is repeated, and only so many; the rest is one problem of the object as a whole.
        """
        unknown = self.members.keys() - self.asked
        shown = sorted(name for name in unknown if _SHOWN_NAME.fullmatch(name))[:_SHOWN_NAMES]
        for name in shown:
            self.fault(name, "unknown_field")
        if len(shown) < len(unknown):
            self.problems.append(FieldProblem(self.pointer, "unknown_field"))
