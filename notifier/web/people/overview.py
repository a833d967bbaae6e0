"""Home by role, system: what a person sees before and beside single notices."""

from __future__ import annotations

from flask import (
    Blueprint,
    current_app,
    make_response,
    redirect,
    render_template,
    request,
    url_for,
)
from flask.typing import ResponseReturnValue

from notifier.accounts.permissions import Permission, Role
from notifier.accounts.read_audit import Read
from notifier.store.reads.alerts import load_open
from notifier.store.reads.home import load_home
from notifier.store.reads.system import load_system
from notifier.store.reads.trail_checkpoints import newest
from notifier.web import security
from notifier.web.people import preferences
from notifier.web.people.alerts import wording
from notifier.web.people.asked import asked
from notifier.web.people.sparks import load_sparks
from notifier.web.people.visit import (
    Form,
    for_anyone_signed_in,
    needs,
    services,
    visitor,
    wanted,
    write_down,
)

LIVE_S = 10
NUMBERS_FIRST = frozenset({Role.ON_CALL, Role.ADMIN})
"""Roles whose home begins with the numbers; the others' with the search box."""


@for_anyone_signed_in
def home() -> ResponseReturnValue:
    """By role: the numbers of on-call, the auditor's proofs, the search box and own look-ups."""
    wish, role = asked(), visitor().role
    numbers_first = role in NUMBERS_FIRST
    with services().database.connection() as connection:
        page = load_home(connection, visitor().name)
        sparks = load_sparks(connection, page.as_of) if numbers_first else None
        checkpoint = newest(connection) if role is Role.AUDITOR else None
        alerts = tuple(map(wording(connection), load_open(connection))) if numbers_first else ()
    return render_template(
        _template("home"), page=page, wish=wish, numbers_first=numbers_first, sparks=sparks,
        alerts=alerts, checkpoint=checkpoint, is_auditor=role is Role.AUDITOR,
        exports=_address("exports"),
        live_s=LIVE_S if wish.live and numbers_first else None,
    )  # fmt: skip


@needs(Permission.VIEW_SYSTEM)
def system() -> ResponseReturnValue:
    """Processes, leader and sweeps with their ages."""
    wish = asked()
    with services().database.connection() as connection:
        page = load_system(connection, with_hosts=visitor().may(Permission.SEE_HOSTS))
        write_down(connection, Read("list", "system", None, len(page.processes)))
    return render_template(
        _template("system"), page=page, wish=wish, live_s=LIVE_S if wish.live else None
    )


def _address(name: str) -> str | None:
    """The address of a page, None where this app has no such page."""
    endpoint = f"people.{name}"
    return url_for(endpoint) if endpoint in current_app.view_functions else None


def _template(name: str) -> str:
    return f"fragments/_{name}.html" if wanted() is Form.FRAGMENT else f"pages/{name}.html"


@for_anyone_signed_in
def prefer() -> ResponseReturnValue:
    """Keep the reader's wishes in a cookie of their own."""
    response = make_response(redirect(security.local_path(request.form.get("next")), 303))
    preferences.keep(response, request.form)
    return response


def add_overview(blueprint: Blueprint) -> None:
    """Put the pages at their addresses."""
    blueprint.add_url_rule("/", view_func=home)
    blueprint.add_url_rule("/system", view_func=system)
    blueprint.add_url_rule("/preferences", view_func=prefer, methods=["POST"])
