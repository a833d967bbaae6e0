"""What a reader likes: light or dark, single keys (WCAG 2.1.4), and the zone of the times.

The zone changes what people read and nothing else: addresses, filters and files stay in UTC.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue

from notifier.domain.zones import zone_label
from notifier.store.reads.notice_story import wording_of_row
from notifier.web import security
from notifier.web.people import times
from notifier.web.people.visit import for_anyone_signed_in, services

if TYPE_CHECKING:
    from notifier.domain.support_words import Wording
    from notifier.store.reads.notice_rows import NoticeRow

COOKIE: Final = "notifier-preferences"
THEMES: Final = ("auto", "light", "dark")
KEYS: Final = ("on", "off")
BROWSER: Final = "browser"
"""What a form says for the browser's own zone; its name comes beside, from a script."""
_OF_BROWSER: Final = "~"
_LIFE: Final = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Preferences:
    """Wishes as they stand in the cookie; anything odd counts as the default.

    `zone` is a name of the IANA database, `follows` whether it was taken over from the browser.
    """

    theme: str = "auto"
    keys: str = "on"
    zone: str = "UTC"
    follows: bool = False

    @property
    def tz(self) -> tzinfo:
        """The zone that times are told in."""
        return UTC if self.zone == "UTC" else zoneinfo.ZoneInfo(self.zone)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the reader picked a zone that is neither UTC nor the browser's."""
        return self.zone != "UTC" and not self.follows


@cache
def zones() -> frozenset[str]:
    """Every zone that this host knows; `UTC` alone where it has no zone files."""
    return frozenset(zoneinfo.available_timezones()) | {"UTC"}


def zones_by_area() -> Mapping[str, Sequence[str]]:
    """The zones to choose from, by continent; old names and fixed offsets are left out."""
    areas: dict[str, list[str]] = {}
    for name in sorted(zones()):
        area, _, place = name.partition("/")
        if place and area not in {"Etc", "SystemV", "US", "posix", "right"}:
            areas.setdefault(area, []).append(name)
    return areas


def preferences() -> Preferences:
    """The wishes of the browser that asks."""
    return _read(request.cookies.get(COOKIE, ""))


@lru_cache(maxsize=256)
def _read(cookie: str) -> Preferences:
    theme, keys, zone = (*cookie.split("."), "", "", "")[:3]
    return _sound(theme, keys, zone)


def _sound(theme: str, keys: str, zone: str) -> Preferences:
    name = zone.removeprefix(_OF_BROWSER)
    known = name in zones()
    return Preferences(
        theme if theme in THEMES else "auto",
        keys if keys in KEYS else "on",
        name if known else "UTC",
        known and zone.startswith(_OF_BROWSER),
    )


def keep(response: Response, form: Mapping[str, str]) -> None:
    """Write the wishes of a posted form into the answer; a form without a zone keeps it."""
    now = preferences()
    wish = _sound(form.get("theme", ""), form.get("keys", "off"), _zone_of(form, now))
    response.set_cookie(
        COOKIE,
        f"{wish.theme}.{wish.keys}.{_written(wish)}",
        max_age=_LIFE,
        secure=services().secure,
        httponly=True,
        samesite="Lax",
        path="/",
    )


def _zone_of(form: Mapping[str, str], now: Preferences) -> str:
    zone = form.get("zone")
    if zone == BROWSER:
        return _OF_BROWSER + form.get("browser_zone", "")
    return _written(now) if zone is None else zone


def _written(wish: Preferences) -> str:
    return (_OF_BROWSER if wish.follows else "") + wish.zone


def clock(moment: datetime, today: datetime | None = None) -> str:
    """A time in the reader's zone, which is named."""
    return times.clock(moment, today, preferences().tz)


def zone_words(now: datetime | None) -> str:
    """`UTC`, or `Europe/Berlin (UTC+1 now)`: the zone of all times of a page."""
    wish = preferences()
    if wish.zone == "UTC" or now is None:
        return wish.zone
    return f"{wish.zone} ({zone_label(now.astimezone(wish.tz))} now)"


def told(row: NoticeRow, now: datetime) -> Wording:
    """The words about one line of a list, their times in the reader's zone."""
    return wording_of_row(row, now, preferences().tz)


@for_anyone_signed_in
def wishes() -> ResponseReturnValue:
    """The form with every zone; the menu of each page has the usual ones."""
    back = security.local_path(request.args.get("next"))
    return render_template("pages/preferences.html", areas=zones_by_area(), back=back)


def add_preferences(blueprint: Blueprint) -> None:
    """Put the form at its address; what it posts is taken where the menu posts to."""
    blueprint.add_url_rule("/preferences", view_func=wishes, methods=["GET"])
