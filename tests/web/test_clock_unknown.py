"""The database has been away for longer than its clock is trusted: every edge still says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
import pytest
from flask import Flask
from psycopg import sql
from werkzeug.test import TestResponse

from notifier import clock as clock_module
from notifier.accounts.permissions import Role
from notifier.assembly.application import compose
from notifier.assembly.pages import web_app
from notifier.clock import AGE_LIMIT_S, DatabaseClock, steady
from notifier.settings import load_settings
from notifier.store.database import Database
from notifier.web.people import visit
from peers.events import EVENTS_PATH, body_of, build_event, signed_headers
from peers.run_settings import Secrets, Surroundings, settings
from tests import people_pages, people_seed
from tests.people_alerts import open_alert
from tests.people_pages import Browser, signed_in
from tests.web.people.test_gate import FORMS, ROUTES

if TYPE_CHECKING:
    from notifier.store.embedded import EmbeddedServer

NOWHERE = Surroundings("http://127.0.0.1:1/links", 1, *(["http://127.0.0.1:1"] * 3))
BASE = "http://localhost"
RESEND = "/callbacks/resend/"
MADE_AT = re.compile(r"page made at a time that is not known")


@contextmanager
def shut(server: EmbeddedServer, url: str) -> Iterator[None]:
    """Postgres ends every session of this database and lets nobody in."""
    with psycopg.connect(url) as connection:
        name = connection.info.dbname
    door = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(server.superuser_url, autocommit=True) as connection:
        connection.execute(door.format(sql.Identifier(name), sql.SQL("false")))
        try:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            yield
        finally:
            connection.execute(door.format(sql.Identifier(name), sql.SQL("true")))


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return Secrets.load(tmp_path / "secrets.json")


@pytest.fixture
def product(database_url: str, tmp_path: Path, secrets: Secrets) -> Iterator[Flask]:
    """The product as it is composed, its clock read a moment ago and nobody reading it again."""
    given = settings(secrets, NOWHERE, data_dir=tmp_path, port=1)
    parts = compose(load_settings(given | {"NOTIFIER_PUBLIC_URL": BASE}), database_url)
    with parts.web.connection() as connection:
        parts.clock.refresh(connection)
    app = web_app(parts)
    yield app
    parts.refusals.close()
    parts.web.close()
    parts.work.close()


@pytest.fixture
def let_age(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """To be called: more time has gone by than a reading of the database's clock is good for."""
    later = steady() + AGE_LIMIT_S + 1
    return partial(monkeypatch.setattr, clock_module, "steady", lambda: later)


def asked_again(answer: TestResponse, code: str) -> None:
    assert (answer.status_code, answer.get_json()["code"]) == (503, code)
    assert answer.headers["Retry-After"] == "2"


def test_a_database_away_for_longer_than_its_clock_is_trusted_is_still_a_503(
    product: Flask,
    postgres: EmbeddedServer,
    database_url: str,
    secrets: Secrets,
    let_age: Callable[[], None],
) -> None:
    let_age()
    ask, event = product.test_client(), build_event()
    body = body_of(event)
    signed = signed_headers(secrets.ingest, body)
    ended = b'{"reason":"used"}'
    told = b'{"type":"email.delivered"}'
    svix = {
        name.replace("webhook", "svix"): value
        for name, value in signed_headers(secrets.resend_webhook_secret, told).items()
    }
    bearer = {"Authorization": f"Bearer {secrets.api_token}"}

    with shut(postgres, database_url):
        asked_again(ask.post(EVENTS_PATH, data=body, headers=signed), "not_admitted")
        cancel = f"{EVENTS_PATH}/{event['event_id']}/cancel"
        signed = signed_headers(secrets.ingest, ended)
        asked_again(ask.post(cancel, data=ended, headers=signed), "unavailable")
        asked_again(ask.post(RESEND, data=told, headers=svix), "unavailable")
        status = f"{EVENTS_PATH}/{event['event_id']}"
        asked_again(ask.get(status, headers=bearer), "unavailable")
        assert ask.get("/healthz").status_code == 200
        ready = ask.get("/readyz")
        assert ready.status_code == 503
        assert {"clock", "database"} <= {
            p["part"] for p in ready.get_json()["parts"] if not p["ok"]
        }
        scraped = ask.get("/metrics", headers=bearer)
        assert "notifier_readings_available 0.0" in scraped.text
        for path in ("/openapi.json", "/static/site.css"):
            with ask.get(path) as answer:
                assert answer.status_code == 200

        form = ask.get("/login")
        assert (form.status_code, bool(MADE_AT.search(form.text))) == (200, True)
        with ask.session_transaction() as cookie:
            cookie["session"] = "a token of some session"
        for path in ("/login", "/", "/nowhere"):
            page = ask.get(path)
            assert page.status_code == (404 if path == "/nowhere" else 503), path
            assert page.content_type.startswith("text/html")
            assert MADE_AT.search(page.text), path
        assert (page := ask.get("/")).headers["Retry-After"] == "5"
        assert "The database does not answer" in page.text


@pytest.fixture
def timeless(database: Database) -> Flask:
    """The pages, over a clock that was last read too long ago."""
    clock, app = DatabaseClock(), people_pages.build_app(database)
    with database.connection() as connection:
        clock.refresh(connection)
    app.extensions[visit.EXTENSION] = replace(app.extensions[visit.EXTENSION], now=clock.now)
    return app


def test_no_page_fails_without_the_database_s_time(
    timeless: Flask, database: Database, let_age: Callable[[], None]
) -> None:
    with database.connection() as connection:
        notice = people_seed.seed(connection)["failed"]
        ids = {"notice": notice, "alert": open_alert(connection), "halt": UUID(int=1)}
    let_age()
    wrong = []
    for role in (Role.ON_CALL, Role.ADMIN):
        browser = signed_in(timeless, database, role)
        for name, route in ROUTES.items():
            path = route.path.format(**ids, export=UUID(int=1))
            for form, (headers, suffix) in FORMS.items():
                answer = _ask(browser, route.method, path + suffix, headers)
                if answer.status_code >= 500 and "Retry-After" not in answer.headers:
                    wrong.append((name, form, answer.status_code))
    assert wrong == []


def _ask(browser: Browser, method: str, path: str, headers: dict[str, str]) -> TestResponse:
    if method == "GET":
        return browser.client.get(path, headers=headers)
    return browser.client.post(path, data={"csrf_token": "x" * 64}, headers=headers)
