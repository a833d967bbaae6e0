"""Links between help-desk tickets and notices, for the help desk's own programs."""

from __future__ import annotations

from flask import Blueprint, Response

from notifier.web.machines.answers import json_answer, require_token
from notifier.web.problem_details import NO_SUCH_NOTICE
from notifier.web.problems import Code, Problem
from notifier.web.services import MachineServices, Scope


def tickets_blueprint(services: MachineServices) -> Blueprint:
    """The two ticket endpoints over `services`."""
    blueprint = Blueprint("tickets", __name__)

    @blueprint.put("/v1/tickets/<id:ticket_id>/notices/<notice:notification_id>")
    def link_notice(ticket_id: str, notification_id: str) -> Response:
        token = require_token(services, Scope.TICKETS)
        if not services.link_ticket(ticket_id, notification_id, token.name):
            raise Problem(Code.NOT_FOUND, detail=NO_SUCH_NOTICE)
        return json_answer({"ticket_id": ticket_id, "notification_id": notification_id})

    @blueprint.get("/v1/tickets/<id:ticket_id>")
    def ticket_notices(ticket_id: str) -> Response:
        require_token(services, Scope.TICKETS)
        notices = list(services.ticket_notices(ticket_id))
        return json_answer({"ticket_id": ticket_id, "notices": notices})

    return blueprint
