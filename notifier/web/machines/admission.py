"""`POST /v1/reset-events`: takes a signed reset event and answers when it is durable."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from flask import Blueprint, Response, request

from notifier.domain.event import AdmissionResult, Admitted, Conflict, ResetEvent, Transport
from notifier.domain.event_document import EventInvalid, parse_event
from notifier.domain.object_reader import FieldProblem
from notifier.logs import fault_fields, log
from notifier.metrics import AdmissionCount
from notifier.web import problem_details
from notifier.web.documents import BodyInvalid, MediaTypeUnsupported, read_object, require_json
from notifier.web.machines.answers import json_answer, signed_body
from notifier.web.problems import STORE_TROUBLE, Code, Problem, retry_after
from notifier.web.requests import trace_id
from notifier.web.services import MachineServices

_KEY_HEADER: Final = "Idempotency-Key"
_KEY_DIFFERS: Final = FieldProblem("/idempotency_key", "differs_from_header", header=_KEY_HEADER)


def admission_blueprint(services: MachineServices) -> Blueprint:
    """The admission endpoint over `services`."""
    blueprint = Blueprint("admission", __name__)

    @blueprint.post("/v1/reset-events")
    def admit_event() -> Response:
        try:
            raw, transport = signed_body(services, "admission")
            _keep_to_rate(services)
            result = _result(services, raw, transport)
        except (EventInvalid, BodyInvalid, MediaTypeUnsupported):
            services.metrics.admission(AdmissionCount.REFUSED)
            raise
        except STORE_TROUBLE as trouble:
            services.metrics.admission(AdmissionCount.NOT_ADMITTED)
            log.warning("not_admitted", **fault_fields(trouble))
            raise Problem(Code.NOT_ADMITTED, headers=retry_after()) from None
        return _answer(services, result)

    return blueprint


def _keep_to_rate(services: MachineServices) -> None:
    wait_s = services.admission_wait_s()
    if wait_s is not None:
        services.metrics.admission(AdmissionCount.RATE_LIMITED)
        raise Problem(Code.RATE_LIMITED, headers=retry_after(wait_s))


def _result(services: MachineServices, raw: bytes, transport: Transport) -> AdmissionResult:
    require_json(request)
    try:
        event = _event(services, raw)
    except EventInvalid as invalid:
        earlier = services.find_admitted(invalid.event) if invalid.event else None
        if earlier is None:
            raise
        return earlier
    return services.admit(event, transport)


def _event(services: MachineServices, raw: bytes) -> ResetEvent:
    document = read_object(raw)
    try:
        event = parse_event(document, services.now(), services.event_rules(), trace_id())
    except EventInvalid as invalid:
        if invalid.event is None or not _key_differs(invalid.event):
            raise
        raise EventInvalid([*invalid.problems, _KEY_DIFFERS]) from None
    if _key_differs(event):
        raise EventInvalid([_KEY_DIFFERS])
    return event


def _key_differs(event: ResetEvent) -> bool:
    """The header is not signed, so it may contradict the body's key but never supply it."""
    return request.headers.get(_KEY_HEADER, event.idempotency_key) != event.idempotency_key


def _answer(services: MachineServices, result: AdmissionResult) -> Response:
    match result:
        case Conflict(keys=keys):
            services.metrics.admission(AdmissionCount.CONFLICT)
            raise Problem(Code.EVENT_CONFLICT, detail=problem_details.conflict(keys))
        case Admitted(replayed=True):
            services.metrics.admission(AdmissionCount.REPLAYED)
            return _accepted(services, result, {"Idempotent-Replayed": "true"})
        case Admitted():
            services.metrics.admission(AdmissionCount.ADMITTED)
            return _accepted(services, result, {})


def in_path(event_id: str) -> str:
    """An id as a segment of a path. Nothing in it needs an escape but `.` and `..`.

    Clients take those two for a way up (RFC 3986, section 5.2.4) and would ask for another
    address; most leave them alone when they are written as `%2E`.
    """
    return event_id if event_id.strip(".") else event_id.replace(".", "%2E")


def _accepted(services: MachineServices, notice: Admitted, headers: dict[str, str]) -> Response:
    status_url = f"{services.public_url.rstrip('/')}/v1/reset-events/{in_path(notice.event_id)}"
    body = {
        "notification_id": notice.notification_id,
        "event_id": notice.event_id,
        "status": notice.status,
        "status_url": status_url,
        "expires_at": notice.expires_at,
        "stop_at": notice.stop_at,
    }
    return json_answer(body, HTTPStatus.ACCEPTED, {"Location": status_url, **headers})
