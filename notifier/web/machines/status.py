"""Status and trail of one event, for programs. Local state only: asking triggers nothing."""

from __future__ import annotations

import re
from typing import Final

from flask import Blueprint, Response, request

from notifier.domain.event_document import EventInvalid
from notifier.domain.object_reader import FieldProblem
from notifier.web.machines.answers import json_answer, require_token
from notifier.web.problem_details import NO_SUCH_EVENT
from notifier.web.problems import Code, Problem
from notifier.web.services import MachineServices, Scope

PAGE_SIZE: Final = 200
LARGEST_PAGE: Final = 500
_NUMBER = re.compile(r"[0-9]{1,15}")


def status_blueprint(services: MachineServices) -> Blueprint:
    """The two status endpoints over `services`."""
    blueprint = Blueprint("status", __name__)

    @blueprint.get("/v1/reset-events/<id:event_id>")
    def event_status(event_id: str) -> Response:
        require_token(services, Scope.STATUS)
        status = services.notice_status(event_id)
        if status is None:
            raise Problem(Code.NOT_FOUND, detail=NO_SUCH_EVENT)
        return json_answer(status)

    @blueprint.get("/v1/reset-events/<id:event_id>/transitions")
    def event_transitions(event_id: str) -> Response:
        require_token(services, Scope.STATUS)
        after = _number("after", 0)
        limit = max(1, min(_number("limit", PAGE_SIZE), LARGEST_PAGE))
        page = services.transitions(event_id, after, limit)
        if page is None:
            raise Problem(Code.NOT_FOUND, detail=NO_SUCH_EVENT)
        return json_answer({"transitions": list(page.transitions), "next": page.next})

    return blueprint


def _number(name: str, default: int) -> int:
    text = request.args.get(name)
    if text is None:
        return default
    if _NUMBER.fullmatch(text) is None:
        raise EventInvalid([FieldProblem("", f"{name}_not_a_number", parameter=name)])
    return int(text)
