"""All machine-facing pages on one app, in the order that they need."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask
from flask.typing import ResponseReturnValue

from notifier.web.machines.admission import admission_blueprint
from notifier.web.machines.cancel import cancel_blueprint
from notifier.web.machines.health import health_blueprint
from notifier.web.machines.openapi import openapi_blueprint
from notifier.web.machines.status import status_blueprint
from notifier.web.machines.tickets import tickets_blueprint
from notifier.web.problems import install_problems
from notifier.web.requests import install_requests
from notifier.web.services import MachineServices


def install_machine_pages(
    app: Flask,
    services: MachineServices,
    elsewhere: Callable[[Exception], ResponseReturnValue] | None = None,
) -> None:
    """Put section 2 of the contract on `app`, but for the providers' callbacks.

    `elsewhere` answers the errors of all other paths. Before any other blueprint that uses
    the `id` or `notice` converters.
    """
    install_requests(app, services.metrics)
    install_problems(app, elsewhere)
    for blueprint in (
        admission_blueprint(services),
        cancel_blueprint(services),
        status_blueprint(services),
        tickets_blueprint(services),
        health_blueprint(services),
        openapi_blueprint(),
    ):
        app.register_blueprint(blueprint)
