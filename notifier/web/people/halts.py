"""What is stopped, by whom and why; how to stop, and how to let it go on.

Stopping is quick: one form on the page. Going on is careful: a page of its own shows what waits
and what of it is dead already. Either form names the halts that its reader saw, and is refused
with the new state where others stand by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import psycopg
from flask import Blueprint, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Outcome, Read
from notifier.flow import halts as flow
from notifier.flow.halts import HaltRefused, StaleHalts
from notifier.logs import fault_fields, log
from notifier.store.reads.halts import (
    HaltRow,
    HaltsPage,
    HeldBack,
    load_backlog,
    load_halts,
    load_held_back,
    one_halt,
)
from notifier.web.people import rows as twins
from notifier.web.people.asked import asked
from notifier.web.people.rows import Cell
from notifier.web.people.visit import Form, needs, services, visitor, wanted, write_down

if TYPE_CHECKING:
    from notifier.web.people.asked import Asked

LIVE_S: Final = 5

KINDS: Final = {
    "all": "Everything",
    "channel:email": "All email",
    "channel:sms": "All text messages",
    "provider": "One provider",
    "template": "One template revision",
    "account": "One account",
    "event": "One event",
}
"""What can be stopped; those without a colon of their own need a name, but for `all`."""

COLUMNS: Final = (
    "halt_id", "scope", "reason", "engaged_by", "engaged_at", "released_by", "release_reason",
    "released_at",
)  # fmt: skip

STALE: Final = (
    "The halts have changed since you opened the form, so nothing was done. This is how they "
    "stand now; if you still want it, send it again."
)
Typed = Mapping[str, str]


@needs(Permission.VIEW_HALTS)
def halts() -> ResponseReturnValue:
    """The halts in force, what is in flight under each, and those released lately."""
    wish = asked()
    read = _read()
    if read is None:
        return _shown(wish, None, status=503)
    page, _ = read
    rows = (halt_cells(each) for each in (*page.engaged, *page.released))
    return twins.for_programs(wanted(), "halts", COLUMNS, rows, page.as_of, {}) or _shown(
        wish, read
    )


@needs(Permission.STOP_SENDING)
def engage() -> ResponseReturnValue:
    """Stop every start in the scope of the form."""
    typed = {name: request.form.get(name, "").strip() for name in ("kind", "which", "reason")}
    scope = scope_of(typed["kind"], typed["which"])
    named = scope if flow.SCOPE.fullmatch(scope) else None
    _note(Read("act", "halt", named, outcome=Outcome.ASKED))
    try:
        flow.engage(
            services().database,
            scope=scope,
            reason=typed["reason"],
            by=visitor().name,
            version=request.form.get("version", ""),
        )
    except HaltRefused as error:
        _note(Read("act", "halt", named, outcome=Outcome.NOT_DONE))
        return _shown(asked(), _read(), fault=f"{error}.", typed=typed, status=422)
    except StaleHalts:
        _note(Read("act", "halt", named, outcome=Outcome.STALE))
        return _shown(asked(), _read(), fault=STALE, typed=typed, status=409)
    _note(Read("act", "halt", named, outcome=Outcome.DONE))
    return redirect(url_for("people.halts"), 303)


@needs(Permission.RESUME_SENDING)
def release_form(halt_id: UUID) -> ResponseReturnValue:
    """What waits under this halt, before it is lifted."""
    return _release_page(halt_id)


@needs(Permission.RESUME_SENDING)
def release(halt_id: UUID) -> ResponseReturnValue:
    """Lift the halt that the form was made for."""
    reason = request.form.get("reason", "").strip()
    _note(Read("act", "release", str(halt_id), outcome=Outcome.ASKED))
    try:
        flow.release_one(
            services().database,
            halt_id=halt_id,
            reason=reason,
            by=visitor().name,
            version=request.form.get("version", ""),
        )
    except HaltRefused as error:
        _note(Read("act", "release", str(halt_id), outcome=Outcome.NOT_DONE))
        return _release_page(halt_id, fault=f"{error}.", status=422)
    except StaleHalts:
        _note(Read("act", "release", str(halt_id), outcome=Outcome.STALE))
        return _release_page(halt_id, fault=STALE, status=409)
    _note(Read("act", "release", str(halt_id), outcome=Outcome.DONE))
    return redirect(url_for("people.halts"), 303)


def scope_of(kind: str, which: str) -> str:
    """The scope as the contract spells it (section 5); whether it is one is checked later."""
    return kind if kind == "all" or ":" in kind else f"{kind}:{which}"


def halt_cells(row: HaltRow) -> dict[str, Cell]:
    """One halt as a program gets it."""
    return {name: _cell(getattr(row, name)) for name in COLUMNS}


def _cell(value: Any) -> Cell:
    return str(value) if isinstance(value, UUID) else value


def _note(read: Read) -> None:
    with services().database.connection() as connection:
        write_down(connection, read)


def _read() -> tuple[HaltsPage, HeldBack | None] | None:
    """The halts, or None where they cannot be read: that is not the same as none.

    With them what they hold back, and what those would that may be engaged here.
    """
    form = wanted()
    with services().database.connection() as connection:
        try:
            page = load_halts(connection)
            scopes = [each.scope for each in page.engaged]
            stops = form is Form.PAGE and visitor().may(Permission.STOP_SENDING)
            is_told = stops or (bool(scopes) and form in {Form.PAGE, Form.FRAGMENT})
            held = load_held_back(connection, scopes) if is_told else None
        except psycopg.Error as error:
            log.warning("halts_unreadable", **fault_fields(error))
            return None
        write_down(connection, Read("list", "halts", None, len(page.engaged)))
    return page, held


def _shown(
    wish: Asked,
    read: tuple[HaltsPage, HeldBack | None] | None,
    *,
    fault: str | None = None,
    typed: Typed | None = None,
    status: int = 200,
) -> ResponseReturnValue:
    folder = "fragments/_" if wanted() is Form.FRAGMENT else "pages/"
    me = visitor()
    page, held = read or (None, None)
    return make_response(
        render_template(
            f"{folder}halts.html", page=page, held=held,
            wish=replace(wish, endpoint="people.halts"), live_s=LIVE_S if wish.live else None,
            may_stop=me.may(Permission.STOP_SENDING), may_release=me.may(Permission.RESUME_SENDING),
            kinds=KINDS, fault=fault, typed=typed or {}, longest=flow.LONGEST_REASON,
        ),
        status,
    )  # fmt: skip


def _release_page(
    halt_id: UUID, *, fault: str | None = None, status: int = 200
) -> ResponseReturnValue:
    with services().database.connection() as connection:
        halt = one_halt(connection, halt_id)
        if halt is None:
            raise NotFound
        backlog = load_backlog(connection, halt.scope)
        page = load_halts(connection)
        write_down(connection, Read("view", "halt", str(halt_id), backlog.living))
    others = tuple(each for each in page.engaged if each.halt_id != halt_id)
    return make_response(
        render_template(
            "pages/release.html", halt=halt, backlog=backlog, page=page, others=others,
            before=page.started_before.get(halt_id, ()), fault=fault,
            longest=flow.LONGEST_REASON,
        ),
        status,
    )  # fmt: skip


def add_halts(blueprint: Blueprint) -> None:
    """Put the pages at their addresses."""
    blueprint.add_url_rule("/halts", view_func=halts, methods=["GET"])
    blueprint.add_url_rule("/halts", view_func=engage, methods=["POST"])
    blueprint.add_url_rule("/halts/<uuid:halt_id>/release", view_func=release_form, methods=["GET"])
    blueprint.add_url_rule("/halts/<uuid:halt_id>/release", view_func=release, methods=["POST"])
