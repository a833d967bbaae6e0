"""Alerts: what stands, who has it in hand, what each one led to, and how each rule does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from flask import Blueprint, make_response, render_template
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Read
from notifier.domain import remarks
from notifier.flow.alerts import LedToAction, Verdict
from notifier.signals import limits
from notifier.signals.judgements import BY_THEMSELVES, RuleName
from notifier.signals.rule_words import (
    TITLES,
    affected_of,
    amount,
    page_of,
    runbook_of,
    value_of,
)
from notifier.signals.thresholds import Unit
from notifier.store.reads.alerts import Alert, AlertFilter, load_alerts, load_rules, load_story
from notifier.web.people import rows as twins
from notifier.web.people.asked import SHORT, Filter, asked
from notifier.web.people.lists import Dated, List, answer_list
from notifier.web.people.phrases import Badge, Hue
from notifier.web.people.refusals import hour_for
from notifier.web.people.rows import Cell
from notifier.web.people.visit import needs, services, visitor, wanted, write_down

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection
    from notifier.store.reads.alerts import RuleRecord

WRITTEN: Final = tuple(each for each in RuleName if each not in BY_THEMSELVES)
"""The rules that an episode can be written of."""

FILTERS: Final[Mapping[str, Filter]] = {
    "state": ("", "open", "resolved"), "rule": ("", *map(str, WRITTEN)),
    "mine": ("", "yes"), "review": ("", "missing"),
}  # fmt: skip
COLUMNS: Final = (
    "alert_id", "rule", "key", "state", "crossed_at", "opened_at", "value", "worst", "threshold",
    "threshold_now", "unit", "affected", "acknowledged_by", "acknowledged_at", "resolved_at",
    "resolved_by", "led_to_action", "review_verdict", "reviewed_by", "reviewed_at",
)  # fmt: skip
NUMBERS: Final = ("value", "worst", "threshold", "threshold_now")
RULE_COLUMNS: Final = (
    "rule", "fired", "acknowledged", "median_acknowledged_after_s", "reviewed", "led_to_action",
    "partly", "tune", "delete",
)  # fmt: skip

NOBODY: Final = Badge("nobody has it", Hue.FAILED, "cross")
BELOW: Final = Badge("below its limit", Hue.CALM, "ring")
IN_HAND: Final = Badge("in hand", Hue.WAITING, "arrow")
TO_REVIEW: Final = Badge("ended, to review", Hue.CALM, "ring")
REVIEWED: Final = Badge("reviewed", Hue.CALM, "check")

LED: Final[Mapping[str, str]] = {
    LedToAction.YES: "Yes, somebody had to do something",
    LedToAction.PARTLY: "Partly",
    LedToAction.NO: "No, it ended by itself or was nothing",
}
VERDICTS: Final[Mapping[str, str]] = {
    Verdict.KEEP: "Keep the rule as it is",
    Verdict.TUNE: "Tune its limit",
    Verdict.DELETE: "Delete the rule",
}
LED_SHORT: Final = {"yes": "led to action", "partly": "led to some action", "no": "led to nothing"}


@dataclass(frozen=True, slots=True)
class Shown:
    """One alert in words."""

    alert: Alert
    title: str
    badge: Badge
    value: str
    worst: str
    peak: str
    """The worst value without its words, to stand beside the present one."""
    limit: str
    is_over: bool
    """Ended, or below its limit: the value of the moment says nothing of it."""
    closes_after: str
    ends_at: datetime | None
    """When it ends if its value stays below the limit, where it is there."""
    affected: str
    page: str
    runbook: str


def cells(row: Alert, _: Dated) -> dict[str, Cell]:
    """One alert as a program gets it."""
    plain: dict[str, Any] = {name: getattr(row, name) for name in COLUMNS if name != "alert_id"}
    numbers = {name: f"{plain[name]:g}" for name in NUMBERS}
    return {"alert_id": str(row.episode_id), **plain, **numbers}


ALERTS: Final = List("alerts", 10, COLUMNS, cells, is_taken_out=False)


def shown(alert: Alert, close_share: float) -> Shown:
    """The alert with its words and its ways on.

    `close_share`: after which share of a life below the limit it ends.
    """
    title = TITLES[RuleName(alert.rule)]
    closes_after_s = close_share * alert.life_s
    return Shown(
        alert,
        f"{title} ({alert.key})" if alert.key else title,
        badge_of(alert),
        value_of(alert.rule, alert.value, alert.unit, alert.detail),
        value_of(alert.rule, alert.worst, alert.unit, alert.detail),
        amount(alert.worst, alert.unit),
        limit_of(alert),
        alert.state != "open" or alert.clear_since is not None,
        amount(closes_after_s, Unit.SECONDS),
        _ends_at(alert, timedelta(seconds=closes_after_s)),
        affected_of(alert.rule, alert.affected),
        page_of(alert.rule, alert.key),
        runbook_of(alert.rule),
    )


def wording(connection: PooledConnection) -> Callable[[Alert], Shown]:
    """How alerts are shown under the policy in force."""
    return partial(shown, close_share=limits.in_force(connection).at["close_share"])


def _ends_at(alert: Alert, closes_after: timedelta) -> datetime | None:
    if alert.state != "open" or alert.clear_since is None:
        return None
    return alert.clear_since + closes_after


def limit_of(alert: Alert) -> str:
    """The limit as it was told, and the one by now where that reads otherwise."""
    told, now = (amount(each, alert.unit) for each in (alert.threshold, alert.threshold_now))
    return told if told == now else f"{told} as it was told (by now {now})"


def badge_of(alert: Alert) -> Badge:
    """How the alert stands, for whoever may have to do something."""
    if alert.state == "open" and alert.clear_since:
        return BELOW
    if alert.state == "open":
        return IN_HAND if alert.acknowledged_by else NOBODY
    return REVIEWED if alert.reviewed_at else TO_REVIEW


@needs(Permission.VIEW_ALERTS)
def alerts() -> ResponseReturnValue:
    """The alerts that somebody was told of, the newest first."""
    wish = asked(SHORT, **FILTERS)
    chosen = wish.chosen
    narrowed = AlertFilter(
        state=chosen.get("state"), rule=chosen.get("rule"),
        owner=visitor().name if "mine" in chosen else None, unreviewed="review" in chosen,
    )  # fmt: skip
    with services().database.connection() as connection:
        page = load_alerts(connection, wish.walk, narrowed)
        named = "/".join(chosen.values()) or None
        write_down(connection, Read("list", "alerts", named, len(page.rows)))
        worded = wording(connection)
    return answer_list(
        ALERTS, page, wish, shown=worded, titles={each: TITLES[each] for each in WRITTEN},
        led=LED_SHORT,
    )  # fmt: skip


@needs(Permission.VIEW_ALERTS)
def alert(episode_id: UUID) -> ResponseReturnValue:
    """One alert: what is wrong, where to see it, what to do, and who does it."""
    return alert_page(episode_id)


def alert_page(
    episode_id: UUID,
    *,
    fault: str | None = None,
    typed: Mapping[str, str] | None = None,
    status: int = 200,
) -> ResponseReturnValue:
    """The page of one alert; with what was wrong with an act, and what was typed for it."""
    now = services().now()
    with services().database.connection() as connection:
        story = load_story(connection, episode_id)
        write_down(connection, Read("view", "alert", str(episode_id), int(story is not None)))
        worded = wording(connection)
        drawn = story and hour_for(story.alert.rule, connection, now, story.alert.key)
    if story is None:
        raise NotFound
    return make_response(
        render_template(
            "pages/alert.html", shown=worded(story.alert), alert=story.alert, story=story,
            may_act=visitor().may(Permission.ANSWER_ALERTS), fault=fault, typed=typed or {},
            led=LED, led_short=LED_SHORT, verdicts=VERDICTS, longest=remarks.LONGEST,
            wanted=remarks.WANTED, as_of=now, refused=drawn,
        ),
        status,
    )  # fmt: skip


@needs(Permission.VIEW_ALERTS)
def alert_rules() -> ResponseReturnValue:
    """How often each rule fired, how soon somebody had it, and how often it led to action."""
    wish = asked(days=("30", "90"))
    days = int(wish.chosen.get("days", "30"))
    with services().database.connection() as connection:
        records = load_rules(connection, days)
        write_down(connection, Read("list", "alert_rules", str(days), len(records)))
    now = services().now()
    rows = map(record_cells, records)
    twin = twins.for_programs(wanted(), "alert-rules", RULE_COLUMNS, rows, now, {})
    if twin is not None:
        return twin
    fired = {each.rule: each for each in records}
    quiet = [each for each in WRITTEN if each not in fired]
    return render_template(
        "pages/alert_rules.html", wish=wish, days=days, records=records, quiet=quiet,
        titles=TITLES, runbook_of=runbook_of, as_of=now,
    )  # fmt: skip


def record_cells(row: RuleRecord) -> dict[str, Cell]:
    """One rule's record as a program gets it."""
    median = None if row.median_ack_s is None else round(row.median_ack_s)
    return {
        "rule": row.rule, "fired": row.fired, "acknowledged": row.acknowledged,
        "median_acknowledged_after_s": median, "reviewed": row.reviewed,
        "led_to_action": row.led, "partly": row.partly, "tune": row.tune, "delete": row.delete,
    }  # fmt: skip


def add_alerts(blueprint: Blueprint) -> None:
    """Put the pages at their addresses."""
    blueprint.add_url_rule("/alerts", view_func=alerts)
    blueprint.add_url_rule("/alerts/rules", view_func=alert_rules)
    blueprint.add_url_rule("/alerts/<uuid:episode_id>", view_func=alert)
