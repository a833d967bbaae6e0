"""The lists of open and ended work: pending, unknown, expired. One view builds page and poll."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from flask import Blueprint, make_response, render_template, request, url_for
from flask.typing import ResponseReturnValue

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Read
from notifier.domain.states import Channel
from notifier.signals.judgements import RuleName
from notifier.signals.rule_words import runbook_of
from notifier.store.reads.expired import ExpiredRow, load_causes, load_expired
from notifier.store.reads.notice_rows import NoticeRow
from notifier.store.reads.paging import Page
from notifier.store.reads.pending import Stage, load_hindrances, load_holding_pauses, load_pending
from notifier.store.reads.unknown import UnknownRow, load_lately, load_unknown
from notifier.web.people import panels
from notifier.web.people import rows as twins
from notifier.web.people.asked import REGION, WORD, Asked, Filter, asked
from notifier.web.people.cursors import write_cursor
from notifier.web.people.preferences import told
from notifier.web.people.rows import Cell
from notifier.web.people.visit import (
    Form,
    needs,
    services,
    visitor,
    wanted,
    write_down,
)

STAGES: Final = tuple(map(str, Stage))
UNKNOWN_FILTERS: Final[Mapping[str, Filter]] = {
    "channel": ("", *map(str, Channel)), "provider": WORD,
}  # fmt: skip
EXPIRED_FILTERS: Final[Mapping[str, Filter]] = {"region": REGION}


class Dated(Protocol):
    """Anything read at a known instant."""

    @property
    def as_of(self) -> datetime:
        """When."""
        ...


@dataclass(frozen=True, slots=True)
class List:
    """How one list is named, refreshed and written for programs."""

    name: str
    live_s: int
    columns: tuple[str, ...]
    plain: Callable[[Any, Dated], Mapping[str, Cell]]
    is_taken_out: bool = True

    @property
    def export(self) -> str | None:
        """What it is called where it is taken out whole; None where it never is."""
        return self.name.removesuffix("_listed") if self.is_taken_out else None


def notice_cells(row: NoticeRow, page: Dated) -> dict[str, Cell]:
    """One notice as a program gets it."""
    cells: dict[str, Cell] = {
        "notification_id": str(row.notice_id), "event_id": row.event_id,
        "reset_request_id": row.reset_request_id, "account_id": row.account_id,
        "state": row.state.value, "requested_at": row.requested_at,
        "expires_at": row.expires_at,
        "remaining_s": max(0, int((row.expires_at - page.as_of).total_seconds())),
        "template": row.template, "email": None, "email_mask": None, "sms": None,
        "sms_mask": None,
    }  # fmt: skip
    for each in row.channels:
        cells |= {each.channel.value: each.state.value, f"{each.channel}_mask": each.mask}
    return cells


def _expired_cells(row: ExpiredRow, page: Dated) -> dict[str, Cell]:
    return notice_cells(row.notice, page) | {
        "arrived_in_time_learnt_late": row.arrived_in_time_learnt_late,
        "arrived_dead": row.arrived_dead,
        "arrived_at_unknown_time": row.arrived_at_unknown_time,
        "cause": row.cause,
    }


def _unknown_cells(row: UnknownRow, page: Dated) -> dict[str, Cell]:
    return {
        "notification_id": str(row.notice_id), "event_id": row.event_id,
        "account_id": row.account_id, "channel": row.channel.value, "since": row.since,
        "reason": row.reason, "provider": row.provider, "attempt": row.attempt,
        "reference": row.reference, "mask": row.mask, "expires_at": row.expires_at,
        "remaining_s": max(0, int((row.expires_at - page.as_of).total_seconds())),
        "next_check_at": row.next_check_at, "looks": row.looks,
    }  # fmt: skip


NOTICE_COLUMNS: Final = (
    "notification_id", "event_id", "reset_request_id", "account_id", "state", "requested_at",
    "expires_at", "remaining_s", "template", "email", "email_mask", "sms", "sms_mask",
)  # fmt: skip
_UNKNOWN_COLUMNS: Final = (
    "notification_id", "event_id", "account_id", "channel", "since", "reason", "provider",
    "attempt", "reference", "mask", "expires_at", "remaining_s", "next_check_at", "looks",
)  # fmt: skip
PENDING: Final = List("pending", 10, NOTICE_COLUMNS, notice_cells)
UNKNOWN: Final = List("unknown", 10, _UNKNOWN_COLUMNS, _unknown_cells)
EXPIRED: Final = List(
    "expired", 30,
    (
        *NOTICE_COLUMNS, "arrived_in_time_learnt_late", "arrived_dead", "arrived_at_unknown_time",
        "cause",
    ),
    _expired_cells,
)  # fmt: skip

_CAUSE_WORDS: Final = {
    name: panels.CAUSES[kind][0]
    for kind, (_, name) in panels.CAUSES.items()
    if kind not in {"unknown", "unconfirmed", "other"}
}
"""What a row of an expired notice says of its cause; the others its column of sending says."""


def answer_list(which: List, page: Page[Any], wish: Asked, **more: object) -> ResponseReturnValue:
    """The rows in the form that is asked for; `more` is for the template alone."""
    earlier = write_cursor(page.earlier, wish.filtered)
    later = write_cursor(page.later, wish.filtered)
    links = {
        name: url_for(wish.endpoint, **wish.address(cursor=each, format="json")) if each else None
        for name, each in (("earlier", earlier), ("later", later))
    }
    cells = (which.plain(row, page) for row in page.rows)
    form = wanted()
    twin = twins.for_programs(form, which.name, which.columns, cells, page.as_of, links)
    if twin is not None:
        return twin
    folder = "pages/" if form is Form.PAGE else "fragments/_"
    return make_response(
        render_template(
            f"{folder}{which.name}.html",
            page=page, wish=wish, earlier=earlier, later=later, which=which,
            here=request.args.get("cursor"), wording_of=told, **more,
        )
    )  # fmt: skip


@needs(Permission.VIEW_LISTS)
def pending() -> ResponseReturnValue:
    """Notices that are not finished, least validity left first."""
    wish = asked(stage=STAGES)
    stage = Stage(wish.chosen.get("stage", Stage.ALL))
    with services().database.connection() as connection:
        page = load_pending(connection, wish.walk, stage)
        hindrances = load_hindrances(connection)
        pauses = load_holding_pauses(connection, stage)
        write_down(connection, Read("list", "pending", stage, len(page.rows)))
    return answer_list(PENDING, page, wish, hindrances=hindrances, pauses=pauses)


@needs(Permission.VIEW_LISTS)
def unknown() -> ResponseReturnValue:
    """Deliveries whose outcome nobody can prove."""
    wish = asked(**UNKNOWN_FILTERS)
    channel, provider = wish.chosen.get("channel"), wish.chosen.get("provider")
    with services().database.connection() as connection:
        page = load_unknown(connection, wish.walk, channel, provider)
        lately = load_lately(connection, channel, provider)
        named = "/".join(filter(None, (channel, provider))) or None
        write_down(connection, Read("list", "unknown", named, len(page.rows)))
    may_act = services().acts is not None and visitor().may(Permission.ACT_ON_NOTICES)
    return answer_list(UNKNOWN, page, wish, may_act=may_act, lately=lately)


@needs(Permission.VIEW_LISTS)
def expired() -> ResponseReturnValue:
    """Notices whose window closed without proof of arrival."""
    wish = asked(**EXPIRED_FILTERS)
    region = wish.chosen.get("region")
    with services().database.connection() as connection:
        page = load_expired(connection, wish.walk, region)
        whole = load_causes(connection, region) if wanted() is Form.PAGE else None
        write_down(connection, Read("list", "expired", region, len(page.rows)))
    causes, regions = (panels.causes(whole[0]), whole[1]) if whole else (None, ())
    return answer_list(
        EXPIRED, page, wish, causes=causes, regions=regions, cause_words=_CAUSE_WORDS,
        runbook=runbook_of(RuleName.EXPIRED),
    )  # fmt: skip


def add_lists(blueprint: Blueprint) -> None:
    """Put the lists at their addresses."""
    blueprint.add_url_rule("/pending", view_func=pending)
    blueprint.add_url_rule("/unknown", view_func=unknown)
    blueprint.add_url_rule("/expired", view_func=expired)
