"""`POST /v1/reset-events/{event_id}/cancel`: the auth service ends a reset request."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, request

from notifier.domain.event_document import EventInvalid
from notifier.domain.object_reader import FieldProblem, ObjectReader
from notifier.flow.cancel import SignedForAnother
from notifier.signatures import signed_digest
from notifier.web.documents import read_object, require_json
from notifier.web.machines.answers import json_answer, signed_body
from notifier.web.problem_details import NOTHING_TO_CANCEL
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
        reason = read_reason(read_object(raw), event_id)
        digest = signed_digest(request.headers, raw)
        try:
            outcome = services.cancel(event_id, reason, transport, digest)
        except SignedForAnother:
            raise Problem(Code.SIGNATURE_REUSED) from None
        if outcome is None:
            raise Problem(Code.NOT_FOUND, detail=NOTHING_TO_CANCEL)
        return json_answer(
            {
                "state": outcome.state,
                "canceled": list(outcome.canceled),
                "may_have_left": list(outcome.may_have_left),
            }
        )

    return blueprint


def read_reason(document: dict[str, Any], event_id: str) -> CancelReason:
    """The reason in a cancel's document, or `EventInvalid`.

    The document may name the event as well, so that the signature covers it; then it is the
    one of the path.
    """
    problems: list[FieldProblem] = []
    reader = ObjectReader(document, "", problems)
    reason = reader.matching("reason", _REASONS.__contains__, "unknown_reason", required=True)
    reader.matching("event_id", event_id.__eq__, "not_the_event_of_the_path")
    reader.close()
    if problems or reason is None:
        raise EventInvalid(problems)
    return CancelReason(reason)
