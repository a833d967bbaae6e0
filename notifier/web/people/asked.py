"""The parameters of a list's address: read, checked, and written again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from flask import request

from notifier.store.reads.outside_text import shown
from notifier.store.reads.paging import Walk
from notifier.web.people.cursors import read_cursor
from notifier.web.people.errors import Unfit

SIZES: Final = ("25", "50", "100")
USUAL_SIZE: Final = "50"
SHORT: Final = "25"
"""Rows of a list whose rows are long: a refresh stays as small as that of the others."""

_ALWAYS: Final = frozenset({"cursor", "size", "live", "format"})
_MOST_IGNORED: Final = 10

WORD: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""A name from one of our vocabularies, whichever."""

MOMENT: Final = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z?", re.ASCII)
"""A time in UTC; the ends of the calendar are out of it, where adding an hour leaves it."""
REGION: Final = re.compile(r"[A-Z]{2}")
TEMPLATE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}@[A-Za-z0-9._-]{1,64}")

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,63}")
DAY: Final = re.compile(r"20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)
"""A day in UTC; `days` finds out whether the month has it."""

NUMBER: Final = re.compile(r"[1-9]\d{0,8}", re.ASCII)

ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")

_WANTS: Final = {
    ID: "is an id of letters, digits and . _ : -",
    WORD: "is a word of small letters",
    NAME: "is a name of letters, digits and . _ @ : -",
    DAY: "is a day of the years 2000 to 2099, such as 2026-01-31",
    NUMBER: "is a whole number above nought",
    MOMENT: "is a time in UTC of the years 2000 to 2099, such as 2026-01-31T09:30Z",
    REGION: "is a country in two capitals, such as GB",
    TEMPLATE: "is a template with its revision, such as password-reset@1",
}

Filter = tuple[str, ...] | re.Pattern[str]
"""The values that a filter permits, its default first; or their shape, none by default."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An address, checked: `chosen` holds the filters that differ from their defaults.

    `filtered` names the list with its filters, so that a cursor fits no other one; `ignored`
    are the parameters that nobody knows. `endpoint` is the view that the links of the page lead to,
    `usual_size` the number of rows that no address names.
    """

    walk: Walk
    live: bool
    chosen: Mapping[str, str]
    filtered: str
    ignored: tuple[str, ...]
    endpoint: str
    usual_size: str = USUAL_SIZE

    def address(self, **changes: str | int | None) -> dict[str, Any]:
        """The parameters again, blank ones dropped, with some replaced."""
        kept: dict[str, str | int | None] = {
            **self.chosen,
            "size": None if str(self.walk.size) == self.usual_size else self.walk.size,
            "live": None if self.live else "off",
        }
        return {name: value for name, value in (kept | changes).items() if value is not None}


def asked(usual_size: str = USUAL_SIZE, /, **filters: Filter) -> Asked:
    """Read the address of a list with these filters. Raises `Unfit`."""
    size = int(_value("size", (usual_size, *SIZES)))
    live = _value("live", ("on", "off")) == "on"
    _value("format", ("json", "csv", "ndjson"))
    chosen = checked(filters, request.args)
    filtered = "&".join([request.path, *(f"{name}={chosen[name]}" for name in sorted(chosen))])
    cursor = read_cursor(request.args.get("cursor"), filtered)
    known = _ALWAYS | filters.keys()
    ignored = sorted({shown(name)[:40] for name in request.args if name not in known})
    walk = Walk(size, cursor, cursor.upto if cursor else None)
    shown_ignored = tuple(ignored[:_MOST_IGNORED])
    return Asked(walk, live, chosen, filtered, shown_ignored, str(request.endpoint), usual_size)


def checked(filters: Mapping[str, Filter], given: Mapping[str, str]) -> dict[str, str]:
    """The filters that differ from their defaults. Raises `Unfit`."""
    values = {name: _value(name, permitted, given) for name, permitted in filters.items()}
    return {name: value for name, value in values.items() if value != _default(filters[name])}


def days(chosen: Mapping[str, str]) -> tuple[date | None, date | None]:
    """The days `since` and `until` of filters that are `DAY`, both inclusive.

    Raises `Unfit` for a day that no month has, and for an end before its beginning.
    """
    since, until = _day("since", chosen), _day("until", chosen)
    if since and until and until < since:
        raise Unfit("since", "is no later day than the one that ends it")
    return since, until


def _day(name: str, chosen: Mapping[str, str]) -> date | None:
    try:
        return date.fromisoformat(chosen[name]) if name in chosen else None
    except ValueError:
        raise Unfit(name, "is a day of the calendar, such as 2026-01-31") from None


def _default(permitted: Filter) -> str:
    return permitted[0] if isinstance(permitted, tuple) else ""


def _value(name: str, permitted: Filter, given: Mapping[str, str] | None = None) -> str:
    value = (request.args if given is None else given).get(name) or _default(permitted)
    if isinstance(permitted, re.Pattern):
        if value and not permitted.fullmatch(value):
            raise Unfit(name, _WANTS[permitted])
    elif value not in permitted:
        raise Unfit(name, f"is one of {', '.join(filter(None, dict.fromkeys(permitted)))}")
    return value
