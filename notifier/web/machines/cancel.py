"""`POST /v1/reset-events/{event_id}/cancel`: the auth service ends a reset request."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, request

from notifier.domain.event_document import EventInvalid
from notifier.domain.object_reader import FieldProblem, ObjectReader
from notifier.web.documents import read_object, require_json
from notifier.web.machines.answers import json_answer, signed_body
from notifier.web.problems import Code, Problem
from notifier.web.services import CancelReason, MachineServices

_REASONS: Final = frozenset(CancelReason)


def cancel_blueprint(services: MachineServices) -> Blueprint:
    """The cancel endpoint over `services`."""
    blueprint = Blueprint("cancel", __name__)

    @blueprint.post("/v1/reset-events/<id:event_id>/cancel")
    def cancel_event(event_id: str) -> Response:
        raw, transport = signed_body(services, "cancel")
        require_json(request)
        reason = read_reason(read_object(raw))
        outcome = services.cancel(event_id, reason, transport)
        if outcome is None:
            raise Problem(Code.NOT_FOUND)
        return json_answer(
            {
                "state": outcome.state,
                "canceled": list(outcome.canceled),
                "may_have_left": list(outcome.may_have_left),
            }
        )

    return blueprint


def read_reason(document: dict[str, Any]) -> CancelReason:
    """The reason in a cancel's document, or `EventInvalid`."""
    problems: list[FieldProblem] = []
    reader = ObjectReader(document, "", problems)
    reason = reader.matching("reason", _REASONS.__contains__, "unknown_reason", required=True)
    reader.close()
    if problems or reason is None:
        raise EventInvalid(problems)
    return CancelReason(reason)
