"""The pages alone in an app, and people who are already signed in: for the pages' tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from flask import Flask

from notifier.accounts import people, sessions
from notifier.accounts.permissions import Role
from notifier.flow import tickets
from notifier.flow.desk import Asks, Desk
from notifier.flow.exports import Exporter
from notifier.flow.operator_acts import OperatorActs
from notifier.flow.policies import PolicyShelf
from notifier.flow.trail_exports import TrailWriter
from notifier.metrics import Metrics
from notifier.web import security
from notifier.web.people.blueprint import people_blueprint
from notifier.web.people.errors import answer_error
from notifier.web.people.export_sources import SOURCES
from notifier.web.people.services import PeopleServices
from notifier.web.problems import install_problems
from notifier.web.requests import install_requests
from tests.people_seed import FINGERPRINT_KEY, database_now

if TYPE_CHECKING:
    from flask.testing import FlaskClient
    from werkzeug.test import TestResponse

    from notifier.store.database import Database

PASSWORD: Final = "correct horse battery"
FRAGMENT: Final = {"HX-Request": "true", "HX-Request-Type": "partial"}
_TOKEN: Final = re.compile(r'name="csrf_token" value="([0-9a-f]{64})"')


def build_app(
    database: Database,
    *,
    keys: tuple[str, ...] = ("k" * 32,),
    secure: bool = False,
    **more: Any,
) -> Flask:
    """An app with the pages for people and nothing else; `more` goes to its services."""
    app = Flask("people", static_folder=None)
    app.config |= security.cookie_settings(keys, secure=secure)
    install_requests(app, Metrics())
    install_problems(app, elsewhere=answer_error)

    def now() -> datetime:
        with database.connection() as connection:
            return database_now(connection)

    asks = {"smtp": Asks(can_find=True, can_poll=False)}
    desk = Desk(database, PolicyShelf(database), announce=lambda entries: None, asks=asks)
    services = PeopleServices(
        database=database,
        fingerprint_keys=(FINGERPRINT_KEY, b"an older key"),
        public_url="https://notices.example" if secure else "http://127.0.0.1",
        now=now,
        version="0.0",
        secure=secure,
        link_ticket=lambda ticket, notice, by: tickets.link(
            database,
            desk,
            ticket_id=ticket,
            notice_id=notice,
            by=by,
            actor=f"operator:{by}",
        ),
        acts=OperatorActs(database, desk),
        exporter=Exporter(database, SOURCES, TrailWriter({}, "0.0")),
        **more,
    )
    app.register_blueprint(people_blueprint(services))
    return app


@dataclass
class Browser:
    """One person's browser."""

    client: FlaskClient
    name: str

    def get(self, path: str, **headers: str) -> TestResponse:
        """Ask for a page."""
        return self.client.get(path, headers=headers)

    def poll(self, path: str) -> TestResponse:
        """Ask as a page that refreshes itself does."""
        return self.client.get(path, headers=FRAGMENT)

    def post(self, path: str, token: str | None = None, **fields: str) -> TestResponse:
        """Send a form that came from the home page."""
        sent = token or csrf_token(self.get("/").text)
        return self.client.post(path, data={"csrf_token": sent, **fields})

    def find(self, text: str) -> TestResponse:
        """Use the search box."""
        return self.post("/search", q=text)


def csrf_token(html: str) -> str:
    """The token that the page's forms carry."""
    found = _TOKEN.search(html)
    assert found, "the page has no form"
    return found[1]


def somebody(database: Database, role: Role, name: str | None = None) -> str:
    """An account of this role; returns its name."""
    with database.connection() as connection:
        return people.add(connection, name or f"{role.value}-person", role, None).name


def signed_in(app: Flask, database: Database, role: Role, name: str | None = None) -> Browser:
    """A browser with a session of its own, without the cost of a password."""
    called = somebody(database, role, name)
    with database.connection() as connection:
        token = sessions.begin(connection, people.named(connection, called).person_id)
    client = app.test_client()
    with client.session_transaction() as cookie:
        cookie["session"] = token
    return Browser(client, called)


def audit_rows(database: Database) -> list[dict[str, Any]]:
    """What was written down about looks, oldest first."""
    with database.connection() as connection:
        return connection.execute(
            "SELECT person, role, action, object_kind, object_ref, hits, outcome, reason"
            " FROM read_audit ORDER BY at"
        ).fetchall()
