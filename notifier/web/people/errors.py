"""Every error that a person sees: what happened, what it means, what to do.

A fragment gets a small piece of page, a program JSON, and nobody a value or a stack.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from flask import Response, make_response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadHost, Forbidden, HTTPException, ServiceUnavailable

from notifier.accounts.rate_limits import TooMany
from notifier.logs import fault_fields, log
from notifier.signals.judgements import RuleName
from notifier.signals.rule_words import TITLES
from notifier.web import security
from notifier.web.people import downloads
from notifier.web.people.runbooks import runbook_asked_for
from notifier.web.people.visit import (
    CrossSite,
    Form,
    FormOutdated,
    recognise_if_possible,
    services,
    wanted,
)
from notifier.web.problems import RETRY_AFTER_S, STORE_TROUBLE
from notifier.web.requests import request_id


class Unfit(Exception):
    """A parameter of the address that says nothing sensible; `field` names it, never its value."""

    def __init__(self, field: str, wants: str) -> None:
        super().__init__(field)
        self.field = field
        self.wants = wants


@dataclass(frozen=True, slots=True)
class Fault:
    """What the error page says."""

    status: int
    code: str
    title: str
    meaning: str
    action: str
    field: str | None = None
    wait_s: int | None = None
    rule: RuleName | None = None
    """The rule whose runbook says what on-call can do."""
    address: str | None = None
    """Where it is to be asked instead."""


_NOT_FOUND: Final = Fault(
    404, "not_found", "There is no such page",
    "The address is mistyped, or it holds something that cannot be an id.",
    "Check the address, or look the notice up by ticket, event, request or account.",
)  # fmt: skip
_FORBIDDEN: Final = Fault(
    403, "permission_missing", "Your role does not cover this",
    "You are signed in, but this page or action belongs to another role. Nothing was changed.",
    "Ask whoever manages your accounts, if you need it for your work.",
)  # fmt: skip
_CROSS_SITE: Final = Fault(
    403, "cross_site", "This came from another site",
    "Another web site made your browser send a form here, so it was refused. "
    "Nothing was changed.",
    "Open the page here and do it again, if it was you.",
)  # fmt: skip
_OUTDATED: Final = Fault(
    403, "form_outdated", "This form belongs to an earlier sign-in",
    "You signed in again after the form was opened, so it was not taken. Nothing was changed.",
    "Go back, reload the page, and send it again.",
)  # fmt: skip
_UNAVAILABLE: Final = Fault(
    503, "unavailable", "The database does not answer",
    "What is shown here cannot be read at the moment. That says nothing about notices: they "
    "are neither lost nor sent because of it.",
    "Wait a few seconds and reload.",
    wait_s=5,
    rule=RuleName.DATABASE_UNREACHABLE,
)  # fmt: skip
_CROWDED: Final = Fault(
    503, "unavailable", "Too many are being listened to",
    "More forms are on their way here than can be waited for. Nothing was changed.",
    "Wait a few seconds and send it again.",
    wait_s=RETRY_AFTER_S,
)  # fmt: skip
_INTERNAL: Final = Fault(
    500, "internal_error", "Something went wrong on our side",
    "The page could not be made. It has been noted, and no notice was changed by it.",
    "Reload once. If it stays so, pass the request id on to whoever runs this.",
)  # fmt: skip
_METHOD: Final = Fault(
    405, "method_not_allowed", "This address cannot be used that way",
    "The page exists, but not for this kind of request. Nothing was changed.",
    "Open it from the menu.",
)  # fmt: skip
_TOO_LARGE: Final = Fault(
    413, "body_too_large", "That was too much text",
    "The form carried more than is taken here. Nothing was changed.",
    "Shorten it and send it again.",
)  # fmt: skip


_AT_ONCE: Final = Fault(
    429, "rate_limited", "Too many downloads at once",
    "As many files are on their way, to you or to everybody together, as may be at one time. "
    "The export itself is kept.",
    "Let one of them end, or break it off, then try again.",
    wait_s=downloads.RETRY_AFTER_S,
)  # fmt: skip


_BY_STATUS: Final = {404: _NOT_FOUND, 405: _METHOD, 413: _TOO_LARGE}


def _wrong_host() -> Fault:
    address = services().public_url
    return Fault(
        400, "wrong_host", "The pages are not to be had under this address",
        "They answer under one name alone, and you asked a process of this service, or a proxy "
        "before it, under another. That says nothing about its health.",
        f"Open {address} instead.", address=address,
    )  # fmt: skip


def _unread(error: Exception, status: int) -> Fault:
    if isinstance(error, security.WrongHost):
        return _wrong_host()
    return Fault(
        status, "bad_request", "The request could not be read",
        "Something about the request is not as a browser would send it.",
        "Open the page again from the menu.",
    )  # fmt: skip


_LABELS: Final = {"since": "from day", "until": "to day", "kind": "kind of thing"}
"""How a form calls a parameter whose name is another word."""


def _unfit(error: Unfit) -> Fault:
    sent = request.method == "POST"
    label = f", the field “{_LABELS[error.field]}”," if error.field in _LABELS else ""
    return Fault(
        422, "validation_failed", f"The {'form' if sent else 'address'} holds something odd",
        f"“{error.field}”{label} is not as it must be: it {error.wants}.",
        "Nothing was done. Go back, correct it, and send it again." if sent
        else "Go back and correct it, or open the page without it.", field=error.field,
    )  # fmt: skip


def _too_many(error: TooMany) -> Fault:
    return Fault(
        429, "rate_limited", "Too many in a short time",
        "There is a limit on how often this may be done, so that nobody can try things out "
        "in bulk.",
        f"Wait {error.wait_s} seconds, then try again.", wait_s=error.wait_s,
    )  # fmt: skip


def fault_of(error: Exception) -> Fault:
    """What to tell about an exception; what is not expected is logged and told as ours."""
    fault = _INTERNAL
    match error:
        case CrossSite():
            fault = _CROSS_SITE
        case FormOutdated():
            fault = _OUTDATED
        case Forbidden():
            fault = _FORBIDDEN
        case Unfit():
            fault = _unfit(error)
        case TooMany():
            fault = _too_many(error)
        case downloads.TooManyAtOnce():
            fault = _AT_ONCE
        case _ if isinstance(error, STORE_TROUBLE):
            log.warning("page_unavailable", endpoint=request.endpoint, **fault_fields(error))
            fault = _UNAVAILABLE
        case ServiceUnavailable():
            fault = _CROWDED
        case HTTPException(code=code) if code is not None and code < 500:
            fault = _BY_STATUS.get(code) or _unread(error, code)
        case _:
            log.error("page_failed", endpoint=request.endpoint, **fault_fields(error))
    return fault


def answer_error(error: Exception) -> ResponseReturnValue:
    """The error in the form that was asked for. Also for addresses that lead nowhere."""
    if isinstance(error, HTTPException) and error.code is not None and error.code < 400:
        return error
    fault = fault_of(error)
    response = _rendered_if_possible(fault)
    response.status_code = fault.status
    if fault.wait_s is not None:
        response.headers["Retry-After"] = str(fault.wait_s)
    if isinstance(error, HTTPException) and fault.status == 405:
        response.headers.extend(
            (name, value) for name, value in error.get_headers() if name == "Allow"
        )
    return security.add_page_headers(response, secure=services().secure)


def _rendered_if_possible(fault: Fault) -> Response:
    """The page where one can be made: without it nobody would see the error, nor our headers."""
    if isinstance(request.routing_exception, BadHost):  # no address can be made under its name
        return _for_programs(fault)
    try:
        return _rendered(fault)
    except Exception as failure:  # noqa: BLE001 - whatever it is, there is something to answer
        log.error("error_page_failed", endpoint=request.endpoint, **fault_fields(failure))
        return _for_programs(fault)


def _rendered(fault: Fault) -> Response:
    match wanted():
        case Form.JSON | Form.CSV | Form.NDJSON:
            return _for_programs(fault)
        case Form.FRAGMENT:
            return make_response(render_template("fragments/_error.html", fault=fault))
        case Form.PAGE:
            if fault.address is None:
                recognise_if_possible()
            return make_response(
                render_template(
                    "pages/error.html",
                    fault=fault,
                    titles=TITLES,
                    runbook=runbook_asked_for() if fault.rule else None,
                    may_be_signed_in=fault.status == 503 and security.session_token() is not None,
                )
            )


def _for_programs(fault: Fault) -> Response:
    body = {"type": f"urn:reset-notice:problem:{fault.code}", "title": fault.title,
            "status": fault.status, "code": fault.code, "request_id": request_id()}  # fmt: skip
    return Response(json.dumps(body), content_type="application/problem+json")
