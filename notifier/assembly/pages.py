"""All pages over the parts of a process: what each room of pages calls."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from uuid import UUID

from flask import Flask

from notifier import __version__
from notifier.assembly.application import Application
from notifier.flow import cancel, rates, tickets, wording
from notifier.flow.operator_acts import OperatorActs
from notifier.flow.receipts import Receipts
from notifier.loopback import is_loopback
from notifier.providers import registry
from notifier.web.gate import refuse_what_was_not_heard
from notifier.web.machines.blueprints import install_machine_pages
from notifier.web.machines.callbacks import CallbackServices, callbacks_blueprint
from notifier.web.machines.lookups import LookUps
from notifier.web.people.blueprint import people_blueprint
from notifier.web.people.errors import answer_error
from notifier.web.people.services import PeopleServices
from notifier.web.security import behind_proxies, cookie_settings, only_on_host
from notifier.web.services import MachineServices


def machine_services(parts: Application) -> MachineServices:
    """What the machine-facing pages call."""
    settings, database = parts.settings, parts.web
    look_ups = LookUps(database)
    return MachineServices(
        public_url=settings.public_base,
        asked_from_here_alone=is_loopback(settings.bind.host) and not settings.proxy_hops,
        metrics=parts.metrics,
        now=parts.clock.now,
        ingest_secrets=[each.key for each in settings.ingest_secrets],
        api_tokens=settings.api_tokens,
        event_rules=partial(wording.event_rules, parts.shelf),
        admit=parts.admission.admit,
        find_admitted=parts.admission.find,
        admission_wait_s=partial(rates.admission_wait_s, database, settings.admission_rate_per_s),
        notice_status=look_ups.notice_status,
        transitions=look_ups.transitions,
        cancel=partial(cancel.cancel_event, parts.desk, database),
        link_ticket=lambda ticket, notice, token: tickets.link_by_token(
            database, parts.desk, ticket_id=ticket, notice_id=UUID(notice), token=token
        ),
        ticket_notices=look_ups.ticket_notices,
        readiness=parts.readiness.parts,
    )


def callback_services(parts: Application) -> CallbackServices:
    """What the providers' callbacks call."""
    receipts = Receipts(parts.web, parts.desk, parts.announce.receipt)
    return CallbackServices(
        public_url=parts.settings.public_base,
        metrics=parts.metrics,
        parsers=registry.parsers(parts.settings, parts.clock.now),
        take=partial(receipts.take, source="callback"),
        refused=parts.refusals.refused,
        unreadable=parts.refusals.unreadable,
    )


def web_app(parts: Application) -> Flask:
    """All pages over the parts of a process."""
    settings = parts.settings
    app = bare_app()
    secure = settings.public_base.startswith("https://")
    app.config.update(cookie_settings(settings.secret_key.all, secure=secure))
    people = PeopleServices(
        database=parts.web,
        fingerprint_keys=settings.fingerprint_key.all,
        public_url=settings.public_base,
        now=parts.clock.now,
        version=__version__,
        secure=secure,
        link_ticket=lambda ticket, notice, by: tickets.link(
            parts.web,
            parts.desk,
            ticket_id=ticket,
            notice_id=notice,
            by=by,
            actor=f"operator:{by}",
        ),
        acts=OperatorActs(parts.web, parts.desk),
        exporter=parts.exporter_on(parts.web),
        issuer=parts.issuer,
        local_accounts=parts.issuer is None or settings.local_accounts,
        count_sign_in=parts.metrics.sign_in,
    )
    behind_proxies(app, settings.proxy_hops)
    install_machine_pages(app, machine_services(parts), elsewhere=answer_error)
    if settings.public_url:
        only_on_host(app, settings.public_url, "people")
    refuse_what_was_not_heard(app)
    app.register_blueprint(callbacks_blueprint(callback_services(parts)))
    app.register_blueprint(people_blueprint(people))
    return app


def bare_app() -> Flask:
    """A Flask application without pages; the templates stand at the top of the house."""
    return Flask("notifier", root_path=str(Path(__file__).resolve().parents[2]), static_folder=None)
