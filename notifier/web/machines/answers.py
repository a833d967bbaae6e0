"""What the machine-facing pages share: JSON answers, signed bodies, bearer tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final
from uuid import UUID

from flask import Response, request

from notifier.domain.event import Transport, is_id
from notifier.domain.tables import exact
from notifier.metrics import SignatureFault
from notifier.signatures import HeaderUnreadable, SignatureInvalid, TimestampOutOfRange, verify
from notifier.web import problem_details
from notifier.web.documents import ADMISSION_LIMIT, raw_body
from notifier.web.problems import Code, Problem
from notifier.web.requests import request_id
from notifier.web.services import ApiToken, MachineServices, Scope, find_token

LONGEST_TOKEN: Final = 512


def json_answer(
    payload: object,
    status: HTTPStatus = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """`payload` as JSON; times as RFC 3339 in UTC, never cached."""
    body = json.dumps(payload, default=_plain, ensure_ascii=False)
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    return Response(body, status, all_headers, content_type="application/json")


def _plain(value: object) -> str:
    match value:
        case datetime():
            return exact(value)
        case UUID():
            return str(value)
    message = f"{type(value).__name__} does not belong into an answer"
    raise TypeError(message)


def signed_body(services: MachineServices, edge: str) -> tuple[bytes, Transport]:
    """The raw body of a request whose signature holds; nothing else is looked at before.

    Raises `Problem` 401 (counted by reason) or `RequestEntityTooLarge`.
    """
    raw = raw_body(request, ADMISSION_LIMIT)
    try:
        key_id = verify(services.ingest_secrets, request.headers, raw, services.now())
    except TimestampOutOfRange:
        services.metrics.signature_refused(edge, SignatureFault.TIMESTAMP)
        raise Problem(Code.TIMESTAMP_OUT_OF_RANGE) from None
    except SignatureInvalid as invalid:
        services.metrics.signature_refused(edge, SignatureFault.SIGNATURE)
        raise Problem(Code.SIGNATURE_INVALID, detail=_unsigned(invalid)) from None
    message_id = request.headers.get("webhook-id", "")
    return raw, Transport(message_id if is_id(message_id) else None, key_id, request_id())


def _unsigned(invalid: SignatureInvalid) -> str | None:
    if isinstance(invalid, HeaderUnreadable):
        return problem_details.header_unreadable(invalid.header)
    return None


def require_token(services: MachineServices, scope: Scope) -> ApiToken:
    """The bearer token of this request, or `Problem` 401 or 403."""
    scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 0 < len(presented) <= LONGEST_TOKEN:
        raise Problem(Code.TOKEN_INVALID)
    token = find_token(services.api_tokens, presented)
    if token is None:
        raise Problem(Code.TOKEN_INVALID)
    if scope not in token.scopes:
        raise Problem(Code.SCOPE_MISSING, detail=problem_details.scope_missing(scope))
    return token
