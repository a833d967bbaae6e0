"""Every error of the machine-facing paths as `application/problem+json` (RFC 9457).

A problem says what is wrong with the request by code and place, never by value, and never
what the database or a library said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import psycopg
from flask import Flask, Response, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from notifier.clock import ClockUnknown
from notifier.domain.event_document import EventInvalid
from notifier.domain.object_reader import FieldProblem
from notifier.logs import fault_fields, log
from notifier.store.database import StoreUnavailable
from notifier.web.documents import BodyInvalid, MediaTypeUnsupported
from notifier.web.problem_details import DETAILS, fault
from notifier.web.requests import request_id

PROBLEM_TYPE: Final = "application/problem+json"
MACHINE_PATHS: Final = ("/v1", "/callbacks", "/healthz", "/readyz", "/metrics", "/openapi.json")

RETRY_AFTER_S: Final = 2
"""What a caller is told to wait when nothing better is known."""


class Code(StrEnum):
    """The word for a program; `CODES` has the status and the sentence that go with it."""

    BAD_REQUEST = "bad_request"
    SIGNATURE_INVALID = "signature_invalid"
    TIMESTAMP_OUT_OF_RANGE = "timestamp_out_of_range"
    TOKEN_INVALID = "token_invalid"  # noqa: S105 - a word, no password
    SCOPE_MISSING = "scope_missing"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    EVENT_CONFLICT = "event_conflict"
    SIGNATURE_REUSED = "signature_reused"
    BODY_TOO_LARGE = "body_too_large"
    MEDIA_TYPE_UNSUPPORTED = "media_type_unsupported"
    VALIDATION_FAILED = "validation_failed"
    RATE_LIMITED = "rate_limited"
    INTERNAL_ERROR = "internal_error"
    NOT_ADMITTED = "not_admitted"
    UNAVAILABLE = "unavailable"


CODES: Final[Mapping[Code, tuple[HTTPStatus, str]]] = {
    Code.BAD_REQUEST: (HTTPStatus.BAD_REQUEST, "The request cannot be read."),
    Code.SIGNATURE_INVALID: (HTTPStatus.UNAUTHORIZED, "No active secret made this signature."),
    Code.TIMESTAMP_OUT_OF_RANGE: (
        HTTPStatus.UNAUTHORIZED,
        "The signed time is more than the tolerance away from ours.",
    ),
    Code.TOKEN_INVALID: (HTTPStatus.UNAUTHORIZED, "The bearer token is missing or not known."),
    Code.SCOPE_MISSING: (HTTPStatus.FORBIDDEN, "The bearer token does not cover this."),
    Code.NOT_FOUND: (HTTPStatus.NOT_FOUND, "There is nothing here."),
    Code.METHOD_NOT_ALLOWED: (HTTPStatus.METHOD_NOT_ALLOWED, "Another method is wanted here."),
    Code.EVENT_CONFLICT: (
        HTTPStatus.CONFLICT,
        "The event, key or reset request is known with other content.",
    ),
    Code.SIGNATURE_REUSED: (
        HTTPStatus.CONFLICT,
        "This signed message has canceled another event; sign one for each.",
    ),
    Code.BODY_TOO_LARGE: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large."),
    Code.MEDIA_TYPE_UNSUPPORTED: (
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "The body must be application/json in UTF-8.",
    ),
    Code.VALIDATION_FAILED: (HTTPStatus.UNPROCESSABLE_ENTITY, "The request is not as agreed."),
    Code.RATE_LIMITED: (HTTPStatus.TOO_MANY_REQUESTS, "More requests than are taken per second."),
    Code.INTERNAL_ERROR: (HTTPStatus.INTERNAL_SERVER_ERROR, "A fault of ours; it has been noted."),
    Code.NOT_ADMITTED: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The event could not be made durable; send it again.",
    ),
    Code.UNAVAILABLE: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The answer is not to be had now; ask again.",
    ),
}
"""Every code with its status and title; the reference page and the schema are made from it."""

_BY_STATUS: Final = {
    400: Code.BAD_REQUEST,
    404: Code.NOT_FOUND,
    405: Code.METHOD_NOT_ALLOWED,
    413: Code.BODY_TOO_LARGE,
    415: Code.MEDIA_TYPE_UNSUPPORTED,
    429: Code.RATE_LIMITED,
    503: Code.UNAVAILABLE,
}

STORE_TROUBLE: Final = (
    StoreUnavailable,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,
    ClockUnknown,
)
"""What a database does while it restarts, fails over or is overloaded: all worth a new try. Away
for longer, it leaves us without its time too."""


class Problem(Exception):
    """Ends a request with an error answer; `code` is one of `CODES`.

    `detail` says what to do, where that is more than what goes for every problem of the code.
    """

    def __init__(
        self,
        code: Code,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(code)
        self.detail = detail or DETAILS[code]
        self.code = code
        self.errors = tuple(errors)
        self.headers = dict(headers or {})


def retry_after(seconds: float = RETRY_AFTER_S) -> dict[str, str]:
    """The `Retry-After` header: whole seconds, rounded up, at least one."""
    return {"Retry-After": str(max(1, -int(-seconds // 1)))}


def install_problems(
    app: Flask, elsewhere: Callable[[Exception], ResponseReturnValue] | None = None
) -> None:
    """Answer every error under `MACHINE_PATHS` as a problem.

    Errors of other paths go to `elsewhere`; without it, to Flask.
    """

    def handle(error: Exception) -> ResponseReturnValue:
        if request.path.startswith(MACHINE_PATHS) or isinstance(error, Problem):
            return answer(_as_problem(error))
        if elsewhere is not None:
            return elsewhere(error)
        if isinstance(error, HTTPException):
            return error
        raise error

    app.register_error_handler(Exception, handle)


def answer(problem: Problem) -> Response:
    """The problem as an HTTP answer."""
    status, title = CODES[problem.code]
    body: dict[str, object] = {
        "type": f"urn:reset-notice:problem:{problem.code}",
        "title": title,
        "detail": problem.detail,
        "status": int(status),
        "code": problem.code,
        "request_id": request_id(),
    }
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        body["errors"] = [fault(each) for each in problem.errors]
    headers = problem.headers | {"Cache-Control": "no-store"}
    if status == HTTPStatus.UNAUTHORIZED and problem.code == Code.TOKEN_INVALID:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(json.dumps(body), status, headers, content_type=PROBLEM_TYPE)


def _as_problem(error: Exception) -> Problem:
    match error:
        case Problem():
            return error
        case HTTPException():
            return _from_http(error)
        case EventInvalid():
            return Problem(Code.VALIDATION_FAILED, error.problems)
        case BodyInvalid():
            return Problem(Code.VALIDATION_FAILED, [FieldProblem("", error.code)])
        case MediaTypeUnsupported():
            return Problem(Code.MEDIA_TYPE_UNSUPPORTED)
    return _from_fault(error)


def _from_fault(error: Exception) -> Problem:
    """What nobody expected: noted without its text, and told apart only by whose turn it is."""
    endpoint = request.endpoint or "none"
    if isinstance(error, STORE_TROUBLE):
        log.warning("store_unavailable", endpoint=endpoint, **fault_fields(error))
        return Problem(Code.UNAVAILABLE, headers=retry_after())
    log.error("request_failed", endpoint=endpoint, **fault_fields(error))
    return Problem(Code.INTERNAL_ERROR)


def _from_http(error: HTTPException) -> Problem:
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    if status < HTTPStatus.BAD_REQUEST:  # a redirect to a tidier address: machines get none
        return Problem(Code.NOT_FOUND)
    given = dict(error.get_headers())
    kept = {name: given[name] for name in ("Allow", "Retry-After") if given.get(name)}
    fallback = (
        Code.BAD_REQUEST if status < HTTPStatus.INTERNAL_SERVER_ERROR else Code.INTERNAL_ERROR
    )
    return Problem(_BY_STATUS.get(status, fallback), headers=kept)
