"""Signing in with a local account, by password or by a one-time link, and signing out."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from notifier.accounts import (
    passwords,
    people,
    rate_limits,
    read_audit,
    sessions,
    sign_in_links,
)
from notifier.accounts.permissions import Role
from notifier.accounts.read_audit import Outcome, Way
from notifier.logs import log
from notifier.web import security
from notifier.web.people.visit import (
    for_anyone_signed_in,
    form_is_current,
    known_visitor,
    open_to_all,
    services,
    visitor,
)
from notifier.web.requests import request_id

REASONS: Final = {
    "ended": "Your session had ended. Sign in and you are taken back to where you were.",
    "not_done": "Your session had ended, so that was not done. Sign in and do it again.",
    "out": "You are signed out.",
    "left_here": "You are signed out here. Single sign-on still knows you.",
}
_WRONG: Final = "That name and password do not go together."
_NO_LOCAL: Final = "Names and passwords are not used here. Sign in with single sign-on."
_OUTDATED: Final = (
    "This sign-in form had gone stale, or the browser keeps no cookies. Please try again."
)


@open_to_all
def sign_in() -> ResponseReturnValue:
    """The form."""
    where = security.local_path(request.args.get("next"))
    if known_visitor() is not None:
        return redirect(where, 303)
    return form(where, note=REASONS.get(request.args.get("why", "")))


@open_to_all
def take_sign_in() -> ResponseReturnValue:
    """Check name and password; both wrong ways look the same and take as long."""
    where = security.local_path(request.form.get("next"))
    name = request.form.get("username", "")[:64]
    if not services().local_accounts:
        return form(where, fault=_NO_LOCAL, status=403)
    if not form_is_current():
        return form(where, fault=_OUTDATED, name=name, status=403)
    password = request.form.get("password", "")
    with services().database.connection() as connection:
        rate_limits.count_sign_in(connection, name, request.remote_addr)
    with services().database.connection() as connection:
        person_id = people.who_signs_in(connection, name, password)
        if person_id is None:
            log.warning("sign_in_refused", reason="wrong_credentials")
            note = Outcome.REFUSED
            way = _local_way("password")
            read_audit.record_sign_in(connection, name, note, request_id(), way=way)
            count(way, note)
            return form(where, fault=_WRONG, name=name, status=422)
        rate_limits.forgive_sign_in(connection, name, request.remote_addr)
    return enter(person_id, where, _local_way("password"))


def form(
    where: str, *, note: str | None = None, fault: str | None = None, name: str = "",
    status: int = 200,
) -> ResponseReturnValue:  # fmt: skip
    """The sign-in page with every way that is open."""
    page = render_template("pages/sign_in.html", next=where, note=note, fault=fault, name=name)
    return make_response(page, status)


def _local_way(how: str) -> Way:
    """A local account's way in; one that passes an issuer by is to be told of."""
    return Way(how, read_audit.BESIDE_ISSUER if services().issuer else None)


def count(way: Way, outcome: Outcome) -> None:
    """Count a sign-in, and say so where a local account passed the issuer by."""
    beside = way.why == read_audit.BESIDE_ISSUER
    services().count_sign_in(way.how, outcome, beside)
    if beside and outcome is Outcome.DONE:
        log.warning("local_account_used", reason=way.how)


def enter(person_id: UUID, where: str, way: Way, role: Role | None = None) -> ResponseReturnValue:
    """A fresh session; the one that this browser had ends. `role`: what the issuer said."""
    with services().database.connection() as connection:
        read_audit.record_sign_in(connection, person_id, Outcome.DONE, request_id(), way=way)
        count(way, Outcome.DONE)
        earlier = security.session_token()
        if earlier is not None:
            sessions.end(connection, sessions.digest_of(earlier))
        if role is not None:
            sessions.end_of_other_roles(connection, person_id, role)
        security.keep_session_token(sessions.begin(connection, person_id, role))
    log.info("signed_in")
    return redirect(where, 303)


@open_to_all
def link(token: str) -> ResponseReturnValue:
    """Show whom a one-time link lets in; looking at it uses nothing up."""
    if not services().local_accounts:
        return form("/", fault=_NO_LOCAL, status=403)
    with services().database.connection() as connection:
        name = sign_in_links.owner(connection, token)
    return _link_page(token, name, status=200 if name else 404)


@open_to_all
def use_link(token: str) -> ResponseReturnValue:
    """Spend the link: set a password if one was typed, and sign in."""
    if not services().local_accounts:
        return form("/", fault=_NO_LOCAL, status=403)
    if not form_is_current():
        return redirect(url_for("people.link", token=token), 303)
    password = request.form.get("password", "")
    with services().database.connection() as connection:
        network = rate_limits.network_of(request.remote_addr)
        rate_limits.count(connection, rate_limits.SIGN_IN_BY_ADDRESS, network)
        if password and not passwords.SHORTEST <= len(password) <= passwords.LONGEST:
            name = sign_in_links.owner(connection, token)
            fault = f"A password has at least {passwords.SHORTEST} characters."
            return _link_page(token, name, fault=fault, status=422)
        person_id = sign_in_links.use(connection, token)
        if person_id is None:
            return _link_page(token, None, status=404)
        if password:
            people.set_password(connection, person_id, password)
    return enter(person_id, "/", _local_way("link"))


def _link_page(
    token: str, name: str | None, *, fault: str | None = None, status: int
) -> ResponseReturnValue:
    page = render_template(
        "pages/link.html", token=token, name=name, fault=fault, shortest=passwords.SHORTEST
    )
    return make_response(page, status)


@for_anyone_signed_in
def sign_out() -> ResponseReturnValue:
    """End the session on our side, and clear the browser."""
    with services().database.connection() as connection:
        sessions.end(connection, visitor().session_digest)
    security.forget_session()
    why = "left_here" if visitor().from_issuer else "out"
    response = make_response(redirect(url_for("people.sign_in", why=why), 303))
    if services().secure:
        response.headers["Clear-Site-Data"] = '"cookies", "storage"'
    return response


def add_sign_in(blueprint: Blueprint) -> None:
    """Put sign-in at its addresses."""
    blueprint.add_url_rule("/login", view_func=sign_in, methods=["GET"])
    blueprint.add_url_rule("/login", view_func=take_sign_in, methods=["POST"])
    blueprint.add_url_rule("/login/link/<token>", view_func=link, methods=["GET"])
    blueprint.add_url_rule("/login/link/<token>", view_func=use_link, methods=["POST"])
    blueprint.add_url_rule("/logout", view_func=sign_out, methods=["POST"])
