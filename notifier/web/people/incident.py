"""Incident: what was created, how long it waited and what became of it, on one axis of time.

The range stands in the address as times, never as "the past hour", so that a link shows
tomorrow what it shows today. A range without an end ends now, and only such a page refreshes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from flask import Blueprint, make_response, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Read
from notifier.domain.states import Channel
from notifier.signals import limits, thresholds
from notifier.signals.thresholds import Crossing
from notifier.store.reads import incident as reads
from notifier.store.reads import rollups
from notifier.store.reads.incident import Marker
from notifier.store.reads.rollups import MINUTE, Minute, Narrowing
from notifier.web.people import panels, times
from notifier.web.people import rows as twins
from notifier.web.people.asked import ID, MOMENT, REGION, TEMPLATE, Asked, asked
from notifier.web.people.errors import Unfit
from notifier.web.people.panels import Panel
from notifier.web.people.rows import Cell
from notifier.web.people.visit import Form, needs, services, wanted, write_down

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

LIVE_S: Final = 15
LONGEST: Final = timedelta(days=1)
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
AROUND: Final = timedelta(minutes=3)
"""What is shown before and after the life of one notice."""

PRESETS: Final = {
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "3h": timedelta(hours=3),
    "12h": timedelta(hours=12),
    "24h": LONGEST,
}
PRESET_WORDS: Final = {
    "30m": "30 minutes", "1h": "hour", "3h": "3 hours", "12h": "12 hours", "24h": "24 hours",
}  # fmt: skip
CHANNELS: Final = tuple(map(str, Channel))

COUNTED: Final = (
    "created", "started", "accepted", "delivered", "not_accepted", "refused", "failed", "unknown",
    "expired", "rescued", "fallback", "avoidable", "unmapped", "callback_refused",
)  # fmt: skip
COLUMNS: Final = (
    "minute", "counted", *COUNTED, "sampled", "waiting", "age_p50_s", "age_p95_s", "age_max_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Incident:
    """The page. `event_is_known` is False where an event was named that nobody has sent."""

    since: datetime
    until: datetime
    as_of: datetime
    ends_now: bool
    minutes: tuple[Minute, ...]
    panels: tuple[Panel, ...]
    crossings: tuple[Crossing, ...]
    markers: tuple[Marker, ...]
    regions: tuple[str, ...]
    templates: tuple[str, ...]
    event_is_known: bool

    @property
    def gap_minutes(self) -> int:
        """Minutes that nobody counted."""
        return sum(each.counts is None for each in self.minutes)

    @property
    def is_quiet(self) -> bool:
        """Whether everything was counted and nothing was there to count."""
        return not self.gap_minutes and not any(each.counts for each in self.minutes)


@needs(Permission.VIEW_LISTS)
def incident() -> ResponseReturnValue:
    """The three panels; an address without a beginning is led to one that has it."""
    wish = asked(
        since=MOMENT, until=MOMENT, event=ID, channel=("", *CHANNELS), region=REGION,
        template=TEMPLATE, last=("", *PRESETS),
    )  # fmt: skip
    now = services().now()
    with services().database.connection() as connection:
        if "since" not in wish.chosen or "last" in wish.chosen:
            return redirect(_absolute(connection, wish, now), 303)
        page = _load(connection, wish, now)
        named = "/".join(wish.chosen.get(name, "") for name in ("event", "channel", "template"))
        write_down(connection, Read("list", "incident", named.strip("/") or None, 1))
    return _answer(page, wish)


def _absolute(connection: PooledConnection, wish: Asked, now: datetime) -> str:
    """The same address with its range as times: around the event's notice, else up to now."""
    is_preset = "last" in wish.chosen
    until = (
        _read("until", wish.chosen["until"]) if "until" in wish.chosen and not is_preset else None
    )
    since = (until or now) - PRESETS[wish.chosen.get("last", "1h")]
    if since < EARLIEST:
        raise Unfit("until", "ends a range that begins in the years 2000 to 2099")
    event = wish.chosen.get("event")
    notice = reads.load_notice_times(connection, event) if event else None
    if notice and not is_preset:
        since = notice.created_at - AROUND
        end = min(notice.expires_at + AROUND, since + LONGEST)
        until = end if end < now else None
    form = wanted()
    changes = {
        "since": moment(since), "until": moment(until) if until else None, "last": None,
        "format": form.value if form in {Form.JSON, Form.CSV, Form.NDJSON} else None,
    }  # fmt: skip
    return url_for("people.incident", **wish.address(**changes))


def moment(at: datetime) -> str:
    """A time as it stands in the address: to the minute, UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def _range(wish: Asked, now: datetime) -> tuple[datetime, datetime]:
    since = _read("since", wish.chosen["since"])
    until = _read("until", wish.chosen["until"]) if "until" in wish.chosen else now
    if since >= until:
        raise Unfit("since", "lies before the end")
    if until - since > LONGEST + MINUTE:
        raise Unfit("since", "lies at most a day before the end")
    return since, until


def _read(name: str, text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Unfit(name, "is no time that exists") from None
    return at.replace(tzinfo=UTC)


def _load(connection: PooledConnection, wish: Asked, now: datetime) -> Incident:
    since, until = panels.widened(*_range(wish, now))
    chosen = wish.chosen
    event, channel = chosen.get("event"), chosen.get("channel")
    if event:
        minutes = reads.load_notice_minutes(connection, event, since, until, channel)
    else:
        narrowing = Narrowing(channel, chosen.get("region"), chosen.get("template"))
        minutes = services().hours.load_minutes(connection, since, until, narrowing)
    minutes = _without_what_is_not_over(minutes, now)
    rules = thresholds.rules(limits.in_force(connection))
    crossings = thresholds.first_crossings(rules, minutes)
    markers = reads.load_markers(connection, since, until)
    regions, templates = rollups.load_dimensions(connection, since, until)
    return Incident(
        since, until, now, "until" not in chosen, minutes,
        panels.build(minutes, since, until, rules, crossings, markers), crossings, markers,
        regions, templates,
        event is None or reads.load_notice_times(connection, event) is not None,
    )  # fmt: skip


def _without_what_is_not_over(minutes: tuple[Minute, ...], now: datetime) -> tuple[Minute, ...]:
    """The minutes up to the present one; that one too if it was counted and sampled already."""
    here = [each for each in minutes if each.at <= now]
    if here and now - here[-1].at < MINUTE and (here[-1].counts is None or not here[-1].queue):
        here.pop()
    return tuple(here)


def _cells(minute: Minute) -> Mapping[str, Cell]:
    queue = minute.queue
    return {
        "minute": minute.at, "counted": minute.counts is not None,
        **{name: minute.count(name) for name in COUNTED}, "sampled": queue is not None,
        "waiting": queue.waiting if queue else None,
        "age_p50_s": round(queue.p50_s) if queue else None,
        "age_p95_s": round(queue.p95_s) if queue else None,
        "age_max_s": round(queue.max_s) if queue else None,
    }  # fmt: skip


def _answer(page: Incident, wish: Asked) -> ResponseReturnValue:
    links = {"incident": url_for("people.incident", **wish.address())}
    cells = map(_cells, page.minutes)
    form = wanted()
    if plain := twins.for_programs(form, "incident", COLUMNS, cells, page.as_of, links):
        return plain
    folder = "pages/" if form is Form.PAGE else "fragments/_"
    return make_response(
        render_template(
            f"{folder}incident.html", page=page, wish=wish, channels=CHANNELS,
            preset_words=PRESET_WORDS, moment=moment, width=panels.width_of(page.since, page.until),
            words=panels, span=times.span,
            live_s=LIVE_S if wish.live and page.ends_now else None,
        )
    )  # fmt: skip


def add_incident(blueprint: Blueprint) -> None:
    """Put the page at its address."""
    blueprint.add_url_rule("/incident", view_func=incident)
