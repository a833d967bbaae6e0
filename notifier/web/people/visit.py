"""Who is asking, what they may do, and which form of answer they want.

Every view of the pages declares the permission that it needs (or that it is open to all); one
that declares nothing is refused, so page, fragment, JSON and CSV share one gate.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, cast
from urllib.parse import quote

import psycopg
from flask import Response, current_app, g, redirect, request, url_for
from werkzeug.exceptions import BadRequest, Forbidden, InternalServerError

from notifier.accounts import read_audit, sessions
from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Outcome, Read
from notifier.logs import fault_fields, log
from notifier.store.database import StoreUnavailable
from notifier.store.reads.halts import HaltRow, engaged_halts
from notifier.web import security
from notifier.web.requests import request_id

if TYPE_CHECKING:
    from notifier.accounts.sessions import Visitor
    from notifier.store.database import PooledConnection
    from notifier.web.people.services import PeopleServices

EXTENSION: Final = "notifier.people"
View = TypeVar("View", bound=Callable[..., object])


class Form(StrEnum):
    """The renderings of one URL."""

    PAGE = "page"
    FRAGMENT = "fragment"
    JSON = "json"
    CSV = "csv"
    NDJSON = "ndjson"


FOR_PROGRAMS: Final = frozenset({Form.JSON, Form.CSV, Form.NDJSON})
"""The forms that an address asks for by its `format`."""


class CrossSite(Forbidden):
    """Another site made the browser post."""


class FormOutdated(Forbidden):
    """The form's token belongs to another session than the one that posts it."""


def services() -> PeopleServices:
    """What the composition root handed to the blueprint."""
    return cast("PeopleServices", current_app.extensions[EXTENSION])


def needs(permission: Permission) -> Callable[[View], View]:
    """Declare what a signed-in person must be allowed to do to reach this view."""

    def mark(view: View) -> View:
        view.needs = permission  # type: ignore[attr-defined]
        return view

    return mark


def open_to_all(view: View) -> View:
    """Declare a view that works without a session (sign-in); it checks its own form's token."""
    view.needs = None  # type: ignore[attr-defined]
    return view


def for_anyone_signed_in(view: View) -> View:
    """Declare a view that needs a session and nothing more (home, sign-out, preferences)."""
    view.needs = "session"  # type: ignore[attr-defined]
    return view


def wanted() -> Form:
    """The form that this request asks for. A restored history entry gets the whole page."""
    named = request.args.get("format")
    if named in FOR_PROGRAMS:
        return Form(named)
    partial = (
        request.headers.get("HX-Request") == "true"
        and request.headers.get("HX-Request-Type") != "full"
        and request.headers.get("HX-History-Restore-Request") != "true"
    )
    return Form.FRAGMENT if partial else Form.PAGE


def visitor() -> Visitor:
    """The signed-in person; only to be asked behind the gate."""
    return cast("Visitor", g.visitor)


def known_visitor() -> Visitor | None:
    """The signed-in person if there is one; also safe while an error is answered."""
    return cast("Visitor | None", g.get("visitor"))


def halts() -> tuple[HaltRow, ...] | None:
    """The halts in force, for the banner on every page; None where they cannot be read."""
    return cast("tuple[HaltRow, ...] | None", g.get("halts", ()))


def gate() -> Response | None:
    """Runs before every view of the blueprint; None lets the request through."""
    if security.holds_nul(request):
        raise BadRequest
    if request.endpoint == "people.static":
        return None
    view = current_app.view_functions[str(request.endpoint)]
    if not hasattr(view, "needs"):
        raise InternalServerError
    if security.comes_from_elsewhere(request):
        log.warning("post_refused", reason="cross_site", endpoint=request.endpoint)
        raise CrossSite
    recognise()
    if view.needs is not None and g.visitor is None:
        return to_sign_in()
    if request.method not in security.SAFE_METHODS and view.needs is not None:
        _check_form()
    if isinstance(view.needs, Permission) and not visitor().may(view.needs):
        _refuse(view.needs)
    return None


def _refuse(needed: Permission) -> NoReturn:
    """Say no, and write down who wanted what."""
    log.warning("permission_missing", endpoint=request.endpoint, code=needed)
    wish = Read("open", str(request.endpoint).rpartition(".")[2], outcome=Outcome.REFUSED)
    with services().database.connection() as connection:
        write_down(connection, wish)
    raise Forbidden


def recognise() -> None:
    """Find out who is asking, and for a whole page which halts stand."""
    g.visitor = None
    token = security.session_token()
    if token is None:
        return
    form = wanted()
    with services().database.connection() as connection:
        extend = form is not Form.FRAGMENT
        g.visitor = sessions.visitor(connection, token, extend=extend, ways=services().ways)
        if g.visitor is not None and form is Form.PAGE:
            g.halts = _halts_if_readable(connection)


def _halts_if_readable(connection: PooledConnection) -> tuple[HaltRow, ...] | None:
    try:
        return engaged_halts(connection)
    except psycopg.Error as error:
        log.warning("halts_unreadable", **fault_fields(error))
        return None


def recognise_if_possible() -> None:
    """The same for an error page outside the gate; a store that fails leaves nobody known."""
    if "visitor" in g:
        return
    try:
        recognise()
    except (StoreUnavailable, psycopg.Error):
        g.visitor = None


def form_is_current() -> bool:
    """Whether the posted form was made for this browser's present session; a refusal is logged."""
    if security.csrf_token_matches(request.form.get(security.CSRF_FIELD, "")):
        return True
    log.warning("post_refused", reason="csrf_mismatch", endpoint=request.endpoint)
    return False


def _check_form() -> None:
    if not form_is_current():
        raise FormOutdated


def to_sign_in() -> Response:
    """Send somebody without a session to the sign-in page, and back here afterwards."""
    form = wanted()
    if form is Form.FRAGMENT:
        back = security.path_of(request.headers.get("HX-Current-URL", ""))
        where = url_for("people.sign_in", next=security.local_path(back), why="ended")
        return Response(status=401, headers={"HX-Redirect": where})
    if form in FOR_PROGRAMS:
        body = f'{{"status":401,"code":"signed_out","request_id":"{request_id()}"}}'
        return Response(body, 401, content_type="application/problem+json")
    if request.method in security.SAFE_METHODS:
        back = quote(request.full_path.rstrip("?"), safe="/?&=%:+-._~,")
        why = "ended" if security.session_token() else None
        return cast("Response", redirect(url_for("people.sign_in", next=back, why=why), 303))
    return cast("Response", redirect(url_for("people.sign_in", why="not_done"), 303))


def write_down(connection: PooledConnection, read: Read) -> None:
    """Record this look before anything of it is shown; no record, no answer."""
    refresh = wanted() is Form.FRAGMENT
    read_audit.record(connection, visitor(), read, request_id(), refresh=refresh)
