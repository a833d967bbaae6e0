"""The page of one notice: what happened, and what to tell the customer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Outcome, Read
from notifier.domain.event import is_id
from notifier.domain.states import DeliveryState, NoticeState
from notifier.domain.support_story import SupportWord
from notifier.domain.support_words import next_permitted
from notifier.store.reads.notice import load_notice
from notifier.store.reads.notice_facts import NoticePage
from notifier.store.reads.notice_related import load_related
from notifier.store.reads.notice_story import wording_of
from notifier.web.people import phrases, times
from notifier.web.people.acts import possible_acts
from notifier.web.people.asked import Asked, asked
from notifier.web.people.notebook import Notebook
from notifier.web.people.notice_twins import Shown, for_programs
from notifier.web.people.phrases import Badge
from notifier.web.people.preferences import preferences, told
from notifier.web.people.search import PATHS
from notifier.web.people.timeline import Source, counts, fallback_story, timeline
from notifier.web.people.visit import Form, needs, services, visitor, wanted, write_down

if TYPE_CHECKING:
    from notifier.store.reads.notice_facts import DeliveryRow

LIVE_S = 5
JUST_NOW = timedelta(seconds=10)
_NO_TICKET_ID = (
    "That is no ticket id: letters, digits and . _ : - without spaces, 128 characters at most."
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A tick on the validity bar; `at` is the share of the life that had passed."""

    at: float
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A ticket id that was not taken, as it was typed, and why."""

    typed: str
    why: str


@needs(Permission.VIEW_NOTICE)
def notice(notice_id: UUID) -> ResponseReturnValue:
    """One notice by its own id; an unknown id is an answer of its own, not an error."""
    return _show(notice_id)


@needs(Permission.LINK_TICKETS)
def link_ticket(notice_id: UUID) -> ResponseReturnValue:
    """Link a help-desk ticket and come back; linking again changes nothing."""
    link = services().link_ticket
    if link is None:
        raise NotFound
    ticket_id = request.form.get("ticket_id", "").strip()
    if not is_id(ticket_id):
        return _show(notice_id, Refused(ticket_id, _NO_TICKET_ID))
    note = Notebook(str(notice_id), "ticket", ticket_id)
    note.write(Outcome.ASKED)
    linked = link(ticket_id, notice_id, visitor().name)
    note.write(Outcome.DONE if linked else Outcome.NOT_DONE)
    if not linked:
        raise NotFound
    return redirect(url_for("people.notice", notice_id=notice_id), 303)


def _show(notice_id: UUID, refused: Refused | None = None) -> ResponseReturnValue:
    wish = replace(asked(source=tuple(Source)), endpoint="people.notice")
    shown = _read(notice_id, Source(wish.chosen.get("source", Source.ALL)))
    twin = for_programs(wanted(), shown)
    if twin is not None:
        return twin
    if shown is None:
        return unknown_notice(notice_id)
    return make_response(_rendered(shown, wish, refused), 422 if refused else 200)


def _read(notice_id: UUID, source: Source) -> Shown | None:
    """What this reader may see of the notice, once the look at it is on record."""
    me = visitor()
    with services().database.connection() as connection:
        page = load_notice(
            connection,
            notice_id,
            with_fingerprints=me.may(Permission.SEE_FINGERPRINTS),
            with_codes=me.may(Permission.SEE_PROVIDER_CODES),
        )
        write_down(connection, Read("view", "notice", str(notice_id), int(page is not None)))
        if page is None:
            return None
        related = load_related(connection, notice_id, page.account_id)
    words = wording_of(page, preferences().tz)
    return Shown(page, words, timeline(page, source), source, related)


def _rendered(shown: Shown, wish: Asked, refused: Refused | None) -> str:
    page, me = shown.page, visitor()
    return render_template(
        "pages/notice.html" if wanted() is Form.PAGE else "fragments/_notice.html",
        page=page, words=shown.words, badge=badge_of(page, shown.words.support_word),
        lines=shown.lines, arrivals=timeline(page), source=shown.source, counts=counts(page),
        related=shown.related, told=told, marks=marks(page), next_permitted=next_permitted,
        passed=times.share(page.as_of - page.requested_at, _life(page)),
        live_s=LIVE_S if wish.live and page.may_change else None, wish=wish,
        delivery_badge=delivery_badge, acts=possible_acts(page),
        ticket_fault=refused and refused.why, ticket_typed=refused.typed if refused else "",
        just_linked=_just_linked(page, me.name), may_audit=me.may(Permission.VIEW_AUDIT),
        may_read_policy=me.may(Permission.VIEW_POLICY),
        may_link=services().link_ticket is not None and me.may(Permission.LINK_TICKETS),
        stories={each.channel: fallback_story(page, each.channel) for each in page.deliveries},
    )  # fmt: skip


def _just_linked(page: NoticePage, by: str) -> str | None:
    """The ticket that the reader linked a moment ago: what the form has come to."""
    fresh = (
        each.ticket_id
        for each in reversed(page.tickets)
        if each.linked_by == by and page.as_of - each.linked_at < JUST_NOW
    )
    return next(fresh, None)


def unknown_notice(notice_id: UUID) -> str:
    """What is said of an id that no notice has; it may be an id of another kind."""
    value = str(notice_id)
    return render_template("pages/nothing.html", key="notice", value=value, kinds=tuple(PATHS))


def badge_of(page: NoticePage, word: SupportWord) -> Badge:
    """The head's badge: "handed over" is good news only where nothing more is ever reported."""
    if word is SupportWord.ACCEPTED and page.state is NoticeState.COMPLETE:
        return phrases.HANDED_OVER
    return phrases.WORDS[word]


def delivery_badge(row: DeliveryRow) -> Badge:
    """A delivery's badge, by the same rule."""
    if row.state is DeliveryState.ACCEPTED and row.final_acceptance:
        return Badge("handed over", phrases.Hue.OK, "check")
    return phrases.badge(row.state)


def _life(page: NoticePage) -> timedelta:
    return page.expires_at - page.requested_at


def marks(page: NoticePage) -> tuple[Mark, ...]:
    """Starts of attempts and the latest useful moment, as shares of the life."""
    found = [
        Mark(
            times.share(each.started_at - page.requested_at, _life(page)),
            "start",
            f"{phrases.NOUNS[row.channel]} attempt {each.number} began",
        )
        for row in page.deliveries
        for each in row.attempts
    ]
    if page.stop_at is not None:
        at = times.share(page.stop_at - page.requested_at, _life(page))
        found.append(Mark(at, "stop", "no start after this"))
    return tuple(found)


def add_notice(blueprint: Blueprint) -> None:
    """Put the notice page at its address."""
    blueprint.add_url_rule("/n/<uuid:notice_id>", view_func=notice)
    blueprint.add_url_rule("/n/<uuid:notice_id>/tickets", view_func=link_ticket, methods=["POST"])
