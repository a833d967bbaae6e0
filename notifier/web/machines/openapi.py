"""`GET /openapi.json`: the machine-facing part of the contract as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from flask import Blueprint, Response

from notifier.web.machines.answers import json_answer
from notifier.web.machines.schemas import ID, SCHEMAS, UUID
from notifier.web.problems import CODES, PROBLEM_TYPE, Code
from notifier.web.requests import HEADER
from notifier.web.services import Scope

Part = dict[str, Any]

VERSION: Final = "1"
_SIGNED = (
    Code.SIGNATURE_INVALID,
    Code.TIMESTAMP_OUT_OF_RANGE,
    Code.BODY_TOO_LARGE,
    Code.MEDIA_TYPE_UNSUPPORTED,
    Code.VALIDATION_FAILED,
)
_TOKEN = (Code.TOKEN_INVALID, Code.SCOPE_MISSING, Code.UNAVAILABLE)
_ANY = (Code.INTERNAL_ERROR,)
_SECURITY = {
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "webhook-signature",
        "description": "Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, raw bytes, "
        "with `webhook-id` and `webhook-timestamp`; 300 s of tolerance both ways.",
    },
    "token": {"type": "http", "scheme": "bearer"},
}


def openapi_blueprint(callback_paths: Sequence[str] = ()) -> Blueprint:
    """The description, served; `callback_paths` as the providers in use have them."""
    blueprint = Blueprint("openapi", __name__)
    document = build_document(callback_paths)

    @blueprint.get("/openapi.json")
    def describe() -> Response:
        return json_answer(document)

    return blueprint


def build_document(callback_paths: Sequence[str] = ()) -> Part:
    """The whole OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Reset notices",
            "version": VERSION,
            "description": "Tells a person once, in time, that a reset was asked for. "
            '"Delivered" is a fact about a message, never proof that an account was recovered.',
        },
        "paths": _event_paths() | _other_paths() | {p: _callback() for p in callback_paths},
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": _SECURITY,
            "responses": {code: _problem(code) for code in CODES},
        },
    }


def _event_paths() -> Part:
    event_id = _in_path("event_id", ID)
    return {
        "/v1/reset-events": {
            "post": _operation(
                "admitEvent",
                "Take a reset event; the answer comes when it is durable",
                _answers(
                    {HTTPStatus.ACCEPTED: "Admission"},
                    *_SIGNED,
                    Code.EVENT_CONFLICT,
                    Code.RATE_LIMITED,
                    Code.NOT_ADMITTED,
                ),
                body="ResetEvent",
                parameters=[
                    _header("Idempotency-Key", ID),
                    _header("traceparent", {"type": "string"}),
                ],
            )
        },
        "/v1/reset-events/{event_id}": {
            "get": _operation(
                "eventStatus",
                "Where an event's notice stands; triggers nothing",
                _answers({HTTPStatus.OK: "Status"}, *_TOKEN, Code.NOT_FOUND),
                scope=Scope.STATUS,
                parameters=[event_id],
            )
        },
        "/v1/reset-events/{event_id}/transitions": {
            "get": _operation(
                "eventTransitions",
                "The trail of an event, with its hashes",
                _answers(
                    {HTTPStatus.OK: "Transitions"}, *_TOKEN, Code.NOT_FOUND, Code.VALIDATION_FAILED
                ),
                scope=Scope.STATUS,
                parameters=[event_id, _in_query("after"), _in_query("limit")],
            )
        },
        "/v1/reset-events/{event_id}/cancel": {
            "post": _operation(
                "cancelEvent",
                "End a reset request; the first reason stays",
                _answers(
                    {HTTPStatus.OK: "Cancellation"},
                    *_SIGNED,
                    Code.NOT_FOUND,
                    Code.SIGNATURE_REUSED,
                    Code.UNAVAILABLE,
                ),
                body="CancelRequest",
                parameters=[event_id],
            )
        },
    }


def _other_paths() -> Part:
    ticket_id = _in_path("ticket_id", ID)
    return {
        "/v1/tickets/{ticket_id}/notices/{notification_id}": {
            "put": _operation(
                "linkTicket",
                "Link a help-desk ticket to a notice",
                _answers({HTTPStatus.OK: "TicketLink"}, *_TOKEN, Code.NOT_FOUND),
                scope=Scope.TICKETS,
                parameters=[ticket_id, _in_path("notification_id", UUID)],
            )
        },
        "/v1/tickets/{ticket_id}": {
            "get": _operation(
                "ticketNotices",
                "The notices of a ticket",
                _answers({HTTPStatus.OK: "Ticket"}, *_TOKEN),
                scope=Scope.TICKETS,
                parameters=[ticket_id],
            )
        },
        "/healthz": {
            "get": _operation(
                "live", "Whether the process answers", _answers({HTTPStatus.OK: "Liveness"})
            )
        },
        "/readyz": {
            "get": _operation(
                "ready",
                "Whether all parts work, and which do not",
                _answers({HTTPStatus.OK: "Readiness", HTTPStatus.SERVICE_UNAVAILABLE: "Readiness"}),
            )
        },
        "/metrics": {
            "get": _operation(
                "metrics",
                "Prometheus text; needs no token where the app is bound to loopback",
                _answers({}, *_TOKEN[:2])
                | {"200": _content("The metrics", "text/plain", {"type": "string"})},
            )
            | {"security": [{"token": [Scope.METRICS]}, {}]}
        },
        "/openapi.json": {
            "get": _operation("describe", "This document", _answers({}))
            | {
                "responses": {
                    "200": _content("OpenAPI 3.1", "application/json", {"type": "object"})
                }
            }
        },
    }


def _callback() -> Part:
    return {
        "post": {
            "operationId": "providerCallback",
            "summary": "A provider's report; 2xx after durable storage, also for repeats",
            "responses": {"200": {"description": "Stored"}}
            | _answers({}, Code.SIGNATURE_INVALID, Code.BODY_TOO_LARGE, Code.UNAVAILABLE),
        }
    }


def _operation(
    name: str,
    summary: str,
    responses: Part,
    *,
    body: str | None = None,
    scope: Scope | None = None,
    parameters: Sequence[Part] = (),
) -> Part:
    operation: Part = {"operationId": name, "summary": summary, "responses": responses}
    if parameters:
        operation["parameters"] = list(parameters)
    if body:
        operation["requestBody"] = {"required": True, "content": _json(body)}
        operation["security"] = [{"signature": []}]
    if scope:
        operation["security"] = [{"token": [scope]}]
    return operation


def _answers(good: dict[HTTPStatus, str], *problems: Code) -> Part:
    """The answers by status; where codes share a status, their names stand in one."""
    answers: Part = {
        str(int(status)): _content(status.phrase, "application/json", _ref(name))
        for status, name in good.items()
    }
    by_status: dict[int, list[Code]] = {}
    for code in (*problems, *_ANY):
        by_status.setdefault(int(CODES[code][0]), []).append(code)
    for status, codes in by_status.items():
        shared = {"description": ", ".join(codes), "content": _problem(codes[0])["content"]}
        single = {"$ref": f"#/components/responses/{codes[0]}"}
        answers[str(status)] = single if len(codes) == 1 else shared
    return answers


def _problem(code: Code) -> Part:
    return {
        "description": CODES[code][1],
        "headers": {HEADER: {"schema": {"type": "string"}}},
        "content": {PROBLEM_TYPE: {"schema": _ref("Problem")}},
    }


def _content(description: str, media_type: str, schema: Part) -> Part:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _json(schema: str) -> Part:
    return {"application/json": {"schema": _ref(schema)}}


def _ref(schema: str) -> Part:
    return {"$ref": f"#/components/schemas/{schema}"}


def _in_path(name: str, schema: Part) -> Part:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str) -> Part:
    return {"name": name, "in": "query", "schema": {"type": "integer", "minimum": 0}}


def _header(name: str, schema: Part) -> Part:
    return {"name": name, "in": "header", "schema": schema}
