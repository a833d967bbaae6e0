"""`GET /openapi.json`: the machine-facing part of the contract as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from flask import Blueprint, Response

from notifier.web.machines.answers import json_answer
from notifier.web.machines.openapi_links import LINK_SCHEMAS, link_webhooks
from notifier.web.machines.openapi_parts import (
    ADMITTED_HEADERS,
    AFTER,
    KEY,
    LIMIT,
    SIGNING,
    TRACE,
    Part,
    answers,
    content,
    header,
    in_path,
    in_query,
    json_body,
    problem,
)
from notifier.web.machines.schemas import ID, SCHEMAS, STRING, UUID
from notifier.web.machines.status import LARGEST_PAGE, PAGE_SIZE
from notifier.web.problems import CODES, Code
from notifier.web.services import Scope

VERSION: Final = "1"
_SIGNED = (
    Code.BAD_REQUEST,
    Code.SIGNATURE_INVALID,
    Code.TIMESTAMP_OUT_OF_RANGE,
    Code.BODY_TOO_LARGE,
    Code.MEDIA_TYPE_UNSUPPORTED,
    Code.VALIDATION_FAILED,
)
_TOKEN = (Code.TOKEN_INVALID, Code.SCOPE_MISSING, Code.UNAVAILABLE)
_SECURITY = {
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "webhook-signature",
        "description": "Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, raw bytes, "
        "with `webhook-id` and `webhook-timestamp`; several signatures with a space between.",
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
        "webhooks": link_webhooks(),
        "components": {
            "schemas": SCHEMAS | LINK_SCHEMAS,
            "securitySchemes": _SECURITY,
            "responses": {code: problem(code) for code in CODES},
        },
    }


def _event_paths() -> Part:
    event_id = in_path("event_id", ID)
    return {
        "/v1/reset-events": {
            "post": _operation(
                "admitEvent",
                "Take a reset event; the answer comes when it is durable",
                answers(
                    {HTTPStatus.ACCEPTED: "Admission"},
                    *_SIGNED,
                    Code.EVENT_CONFLICT,
                    Code.RATE_LIMITED,
                    Code.NOT_ADMITTED,
                    Code.UNAVAILABLE,
                    headers=ADMITTED_HEADERS,
                ),
                body="ResetEvent",
                parameters=[
                    header("Idempotency-Key", ID, KEY),
                    header("traceparent", STRING, TRACE),
                ],
            )
        },
        "/v1/reset-events/{event_id}": {
            "get": _operation(
                "eventStatus",
                "Where an event's notice stands; triggers nothing",
                answers({HTTPStatus.OK: "Status"}, *_TOKEN, Code.NOT_FOUND),
                scope=Scope.STATUS,
                parameters=[event_id],
            )
        },
        "/v1/reset-events/{event_id}/transitions": {
            "get": _operation(
                "eventTransitions",
                "The trail of an event, with its hashes",
                answers(
                    {HTTPStatus.OK: "Transitions"}, *_TOKEN, Code.NOT_FOUND, Code.VALIDATION_FAILED
                ),
                scope=Scope.STATUS,
                parameters=[
                    event_id,
                    in_query("after", AFTER, {"minimum": 0, "default": 0}),
                    in_query(
                        "limit",
                        LIMIT,
                        {"minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE_SIZE},
                    ),
                ],
            )
        },
        "/v1/reset-events/{event_id}/cancel": {
            "post": _operation(
                "cancelEvent",
                "End a reset request; the first reason stays",
                answers(
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
    ticket_id = in_path("ticket_id", ID)
    return {
        "/v1/tickets/{ticket_id}/notices/{notification_id}": {
            "put": _operation(
                "linkTicket",
                "Link a help-desk ticket to a notice",
                answers({HTTPStatus.OK: "TicketLink"}, *_TOKEN, Code.NOT_FOUND),
                scope=Scope.TICKETS,
                parameters=[ticket_id, in_path("notification_id", UUID)],
            )
        },
        "/v1/tickets/{ticket_id}": {
            "get": _operation(
                "ticketNotices",
                "The notices of a ticket; an unknown one has none, and one that cannot be an id "
                "is 404",
                answers({HTTPStatus.OK: "Ticket"}, *_TOKEN, Code.NOT_FOUND),
                scope=Scope.TICKETS,
                parameters=[ticket_id],
            )
        },
        "/healthz": {
            "get": _operation(
                "live", "Whether the process answers", answers({HTTPStatus.OK: "Liveness"})
            )
        },
        "/readyz": {
            "get": _operation(
                "ready",
                "Whether all parts work, and which do not",
                answers({HTTPStatus.OK: "Readiness", HTTPStatus.SERVICE_UNAVAILABLE: "Readiness"}),
            )
        },
        "/metrics": {
            "get": _operation(
                "metrics",
                "Prometheus text; needs no token where the app is bound to loopback",
                answers({}, *_TOKEN[:2])
                | {"200": content("The metrics", "text/plain", {"type": "string"})},
            )
            | {"security": [{"token": [Scope.METRICS]}, {}]}
        },
        "/openapi.json": {
            "get": _operation("describe", "This document", answers({}))
            | {"responses": {"200": content("OpenAPI 3.1", "application/json", {"type": "object"})}}
        },
    }


def _callback() -> Part:
    return {
        "post": {
            "operationId": "providerCallback",
            "summary": "A provider's report; 2xx after durable storage, also for repeats",
            "responses": {"200": {"description": "Stored"}}
            | answers({}, Code.SIGNATURE_INVALID, Code.BODY_TOO_LARGE, Code.UNAVAILABLE),
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
    signing = [header(*each, required=True) for each in SIGNING] if body else []
    if signing or parameters:
        operation["parameters"] = [*signing, *parameters]
    if body:
        operation["requestBody"] = {"required": True, "content": json_body(body)}
        operation["security"] = [{"signature": []}]
    if scope:
        operation["security"] = [{"token": [scope]}]
    return operation
