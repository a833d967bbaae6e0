"""Signing in at the issuer: the way there, the way back, and the way out.

The way there is a link and no form: browsers hold a form's redirects to the policy that keeps
our forms on our site. What comes back is taken once, in the browser that it began in.
"""

from __future__ import annotations

from typing import Final

from flask import Blueprint, abort, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from notifier.accounts import oidc_people, oidc_starts, rate_limits, read_audit
from notifier.accounts.oidc import (
    Client,
    Identity,
    IssuerUnreachable,
    Refusal,
    SignInRefused,
    identity_of,
)
from notifier.accounts.oidc_issuer import QUIET_S, Issuer
from notifier.accounts.read_audit import Outcome, Way
from notifier.logs import log
from notifier.web import security
from notifier.web.people.errors import Fault
from notifier.web.people.sign_in import count, enter, form
from notifier.web.people.visit import known_visitor, open_to_all, services
from notifier.web.requests import request_id

LONGEST_WORD: Final = 4_096
"""Characters of a code; what is longer is none."""

_SILENT: Final = (
    "Single sign-on does not answer at the moment, so nobody can come in that way. "
    "Try again in a few seconds."
)
_WHY: Final = {
    Refusal.NOT_BEGUN: "That sign-in was not begun in this browser, was used before, or took "
    "longer than ten minutes. Please start again.",
    Refusal.DENIED: "Single sign-on said no, or it was broken off there.",
    Refusal.OTHER_ISSUER: "That answer came from another sign-in service than the one asked.",
    Refusal.CODE: "Single sign-on did not stand by its own answer. Please start again.",
    Refusal.TOKEN: "What single sign-on said could not be verified, so it was not believed. "
    "If it stays so, pass the request id on to whoever runs this.",
}


def _issuer() -> Issuer:
    return services().issuer or abort(404)


@open_to_all
def to_issuer() -> ResponseReturnValue:
    """Send the person to the issuer; whoever another site led here sees the page first."""
    issuer, where = _issuer(), security.local_path(request.args.get("next"))
    if known_visitor() is not None:
        return redirect(where, 303)
    if security.is_led_from_elsewhere(request):
        return redirect(url_for("people.sign_in", next=where), 303)
    browser = security.browser_secret()
    try:
        issuer.offer()
        with services().database.connection() as connection:
            network = rate_limits.network_of(request.remote_addr)
            rate_limits.count(connection, rate_limits.SIGN_IN_BY_ADDRESS, network)
            start = oidc_starts.begin(connection, browser, issuer.client.issuer, where)
        return redirect(issuer.way_in(start), 303)
    except IssuerUnreachable as error:
        return _silent(error, where)


@open_to_all
def from_issuer() -> ResponseReturnValue:
    """Take what the issuer sent the browser back with."""
    issuer, browser = _issuer(), security.browser_secret()
    state = request.args.get("state", "")
    with services().database.connection() as connection:
        where = oidc_starts.take(connection, state, browser, issuer.client.issuer)
    if where is None and known_visitor() is not None:
        return redirect("/", 303)
    if where is None:
        return _refused(SignInRefused(Refusal.NOT_BEGUN), issuer.client, "/")
    try:
        identity = _identity(issuer, oidc_starts.of_state(state, browser))
        with services().database.connection() as connection:
            person_id = oidc_people.account_of(connection, identity)
    except SignInRefused as error:
        return _refused(error, issuer.client, where)
    except IssuerUnreachable as error:
        return _silent(error, where)
    return enter(person_id, where, Way("oidc"), identity.role)


def _identity(issuer: Issuer, start: oidc_starts.Start) -> Identity:
    issuer.check_sender(request.args.get("iss"))
    if "error" in request.args:
        raise SignInRefused(Refusal.DENIED)
    code = request.args.get("code", "")
    if not 0 < len(code) <= LONGEST_WORD:
        raise SignInRefused(Refusal.CODE, "missing")
    return identity_of(issuer.client, issuer.claims(code, start, services().now()))


def _silent(error: IssuerUnreachable, where: str) -> ResponseReturnValue:
    log.warning("issuer_unreachable", reason=error.what)
    response = make_response(form(where, fault=_SILENT, status=503))
    response.headers["Retry-After"] = str(int(QUIET_S))
    return response


def _refused(error: SignInRefused, client: Client, where: str) -> ResponseReturnValue:
    refusal = error.refusal
    log.warning("sign_in_refused", reason=refusal, detail=error.detail or None)
    way = Way("oidc", refusal)
    with services().database.connection() as connection:
        read_audit.record_sign_in(connection, "", Outcome.REFUSED, request_id(), way=way)
    count(way, Outcome.REFUSED)
    if refusal in _WHY:
        return form(where, fault=_WHY[refusal], status=403)
    return make_response(render_template("pages/error.html", fault=_no_entry(refusal, client)), 403)


def _no_entry(refusal: Refusal, client: Client) -> Fault:
    """What to tell somebody whom the issuer knows and who is not let in here."""
    accepted = ", ".join(client.roles)
    if refusal is Refusal.SHUT:
        return Fault(
            403, refusal, "Your account here is shut",
            "Single sign-on knows you, but your account in this system was shut.",
            "Ask whoever runs this, if you need it for your work.",
        )  # fmt: skip
    if refusal is Refusal.SEVERAL_ROLES:
        return Fault(
            403, refusal, "You have several roles here",
            "Single sign-on gives you more than one role, and exactly one is needed: what one "
            "may see another must not.",
            "Ask whoever manages your accounts there to leave you one of these in "
            f"“{client.role_claim}”: {accepted}.",
        )  # fmt: skip
    return Fault(
        403, refusal, "You have no role here",
        "Single sign-on knows you, but nothing that it says of you stands for a role here, and "
        "nobody is let in without one.",
        "Ask whoever manages your accounts there to give you one of these in "
        f"“{client.role_claim}”: {accepted}.",
    )  # fmt: skip


@open_to_all
def leave_issuer() -> ResponseReturnValue:
    """End the sign-in at the issuer too, where it offers that; ours has ended before."""
    issuer = _issuer()
    if known_visitor() is not None:
        return redirect("/", 303)
    try:
        way_out = issuer.way_out()
    except IssuerUnreachable as error:
        return _silent(error, "/")
    if way_out is None:
        note = "You are signed out here. Single sign-on offers no way to sign out of it from here."
        return form("/", note=note)
    return redirect(way_out, 303)


def add_oidc(blueprint: Blueprint) -> None:
    """Put single sign-on at its addresses."""
    blueprint.add_url_rule("/login/sso", view_func=to_issuer, methods=["GET"])
    blueprint.add_url_rule("/login/sso/return", view_func=from_issuer, methods=["GET"])
    blueprint.add_url_rule("/login/sso/leave", view_func=leave_issuer, methods=["GET"])
