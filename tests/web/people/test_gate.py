"""Who gets in: every route, every role, every rendering."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from flask import Flask

from notifier.accounts.permissions import GRANTS, Permission, Role, may
from notifier.flow import halts
from notifier.flow.exports import Exporter, Order
from notifier.web import security
from notifier.web.people.export_sources import SOURCES
from tests.database import Clock
from tests.people_alerts import open_alert
from tests.people_pages import FRAGMENT, Browser, audit_rows, csrf_token, signed_in

if TYPE_CHECKING:
    from notifier.store.database import Database


@dataclass(frozen=True)
class Route:
    """One rule of the app: a path that leads there, and who may. `needs` None: without sign-in."""

    path: str
    needs: Permission | str | None
    method: str = "GET"
    also: Permission | None = None
    """Asked for beside, by what the address names."""


ROUTES = {
    "home": Route("/", "session"),
    "search_form": Route("/search", Permission.LOOK_UP),
    "search": Route("/search", Permission.LOOK_UP, "POST"),
    "by_ticket": Route("/t/T-1001", Permission.LOOK_UP),
    "by_event": Route("/e/evt-failed", Permission.LOOK_UP),
    "by_reset_request": Route("/r/req-failed", Permission.LOOK_UP),
    "by_account": Route("/a/acct-jana", Permission.LOOK_UP),
    "notice": Route("/n/{notice}", Permission.VIEW_NOTICE),
    "link_ticket": Route("/n/{notice}/tickets", Permission.LINK_TICKETS, "POST"),
    "act_form": Route("/n/{notice}/stop", Permission.ACT_ON_NOTICES),
    "do_act": Route("/n/{notice}/stop", Permission.ACT_ON_NOTICES, "POST"),
    "pending": Route("/pending", Permission.VIEW_LISTS),
    "unknown": Route("/unknown", Permission.VIEW_LISTS),
    "expired": Route("/expired", Permission.VIEW_LISTS),
    "failures": Route("/failures", Permission.VIEW_LISTS),
    "incident": Route("/incident", Permission.VIEW_LISTS),
    "halts": Route("/halts", Permission.VIEW_HALTS),
    "engage": Route("/halts", Permission.STOP_SENDING, "POST"),
    "release_form": Route("/halts/{halt}/release", Permission.RESUME_SENDING),
    "release": Route("/halts/{halt}/release", Permission.RESUME_SENDING, "POST"),
    "system": Route("/system", Permission.VIEW_SYSTEM),
    "alerts": Route("/alerts", Permission.VIEW_ALERTS),
    "alert": Route("/alerts/{alert}", Permission.VIEW_ALERTS),
    "alert_rules": Route("/alerts/rules", Permission.VIEW_ALERTS),
    "act_on_alert": Route("/alerts/{alert}/give_back", Permission.ANSWER_ALERTS, "POST"),
    "runbooks": Route("/runbooks", Permission.VIEW_ALERTS),
    "runbook": Route("/runbooks/queue_age", Permission.VIEW_ALERTS),
    "policy": Route("/policy", Permission.VIEW_POLICY),
    "check_policy": Route("/policy", Permission.CHANGE_POLICY, "POST"),
    "keep_policy": Route("/policy/revisions", Permission.CHANGE_POLICY, "POST"),
    "policy_revision": Route("/policy/revisions/1", Permission.VIEW_POLICY),
    "policy_file": Route("/policy/revisions/1/policy.toml", Permission.VIEW_POLICY),
    "audit": Route("/audit", Permission.VIEW_AUDIT),
    "exports": Route("/exports", Permission.VIEW_LISTS),
    "export_form": Route("/exports/new/audit", Permission.EXPORT, also=Permission.VIEW_AUDIT),
    "order_export": Route(
        "/exports/new/audit", Permission.EXPORT, "POST", also=Permission.VIEW_AUDIT
    ),
    "order_trail": Route("/exports/trail", Permission.EXPORT_TRAIL, "POST"),
    "export": Route("/exports/{export}", Permission.EXPORT, also=Permission.VIEW_AUDIT),
    "export_manifest": Route(
        "/exports/{export}/manifest", Permission.EXPORT, also=Permission.VIEW_AUDIT
    ),
    "export_file": Route("/exports/{export}/file", Permission.EXPORT, also=Permission.VIEW_AUDIT),
    "sender_domains": Route("/sender-domains", Permission.VIEW_LISTS),
    "check_sender": Route("/sender-domains", Permission.CHECK_SENDERS, "POST"),
    "wishes": Route("/preferences", "session"),
    "prefer": Route("/preferences", "session", "POST"),
    "sign_out": Route("/logout", "session", "POST"),
    "sign_in": Route("/login", None),
    "to_issuer": Route("/login/sso", None),
    "from_issuer": Route("/login/sso/return", None),
    "leave_issuer": Route("/login/sso/leave", None),
    "take_sign_in": Route("/login", None, "POST"),
    "link": Route("/login/link/spent", None),
    "use_link": Route("/login/link/spent", None, "POST"),
}
"""Every endpoint of the pages; a new one without an entry here fails the test below."""

PAGES = {name: each for name, each in ROUTES.items() if each.needs and each.method == "GET"}
POSTS = {name: each for name, each in ROUTES.items() if each.needs and each.method == "POST"}
FORMS = {
    "page": ({}, ""),
    "fragment": (FRAGMENT, ""),
    "json": ({}, "?format=json"),
    "csv": ({}, "?format=csv"),
    "ndjson": ({}, "?format=ndjson"),
}
Ids = dict[str, str]


@pytest.fixture
def ids(database: Database, notices: dict[str, UUID]) -> Ids:
    """A notice, a halt that stands, somebody's export and an alert."""
    halt = halts.engage(database, scope="event:evt-x", reason="drill", by="cli").halt.halt_id
    order = Order("pending", {}, "everything", "csv", "ghost", "on-call", "r")
    with database.connection() as connection:
        made = Exporter(database, SOURCES).order(connection, order)
        alert = open_alert(connection)
    made_up = {"notice": notices["failed"], "halt": halt, "export": made, "alert": alert}
    return {name: str(each) for name, each in made_up.items()}


def is_granted(role: Role, route: Route) -> bool:
    asked = [each for each in (route.needs, route.also) if isinstance(each, Permission)]
    return all(may(role, each) for each in asked)


def ask(browser: Browser, route: Route, ids: Ids, form: str) -> int:
    headers, suffix = FORMS[form]
    path = route.path.format(**ids) + suffix
    return browser.client.get(path, headers=headers).status_code


def test_every_view_says_what_it_needs(app: Flask) -> None:
    silent = [
        name
        for name, view in app.view_functions.items()
        if not hasattr(view, "needs") and name != "people.static"
    ]
    assert silent == []


def test_the_table_of_this_file_names_every_route(app: Flask) -> None:
    rules = {
        (rule.endpoint.removeprefix("people."), method)
        for rule in app.url_map.iter_rules()
        for method in rule.methods or ()
        if method not in {"HEAD", "OPTIONS"}
    }
    assert rules - {("static", "GET")} == {(name, each.method) for name, each in ROUTES.items()}


def test_the_table_and_the_views_say_the_same(app: Flask) -> None:
    views: dict[str, Any] = dict(app.view_functions)
    declared = {name: views[f"people.{name}"].needs for name in ROUTES}
    assert declared == {name: each.needs for name, each in ROUTES.items()}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("role", Role)
def test_each_role_gets_exactly_what_it_is_granted(
    app: Flask, database: Database, ids: Ids, role: Role, form: str
) -> None:
    browser = signed_in(app, database, role)
    for name, route in PAGES.items():
        status = ask(browser, route, ids, form)
        # Somebody else's export is not refused but not there.
        denied = {404} if route.needs is Permission.EXPORT and may(role, route.needs) else {403}
        expected = {200, 303} if is_granted(role, route) else denied | {403}
        assert status in expected, (name, status)


@pytest.mark.parametrize("role", Role)
def test_each_role_does_exactly_what_it_is_granted(
    app: Flask, database: Database, ids: Ids, role: Role
) -> None:
    browser = signed_in(app, database, role)
    token = csrf_token(browser.get("/").text)
    for name, route in POSTS.items():
        status = browser.post(route.path.format(**ids), token=token).status_code
        assert (status == 403) is not is_granted(role, route), (name, status)


@pytest.mark.parametrize("form", FORMS)
def test_a_permission_taken_away_is_gone_with_the_next_request(
    app: Flask, database: Database, ids: Ids, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = signed_in(app, database, Role.AUDITOR)
    monkeypatch.setitem(GRANTS, Role.AUDITOR, frozenset())
    for name, route in PAGES.items():
        if route.needs != "session":
            assert ask(browser, route, ids, form) == 403, name


@pytest.mark.parametrize("form", FORMS)
def test_nobody_gets_in_without_a_session(app: Flask, ids: Ids, form: str) -> None:
    browser = Browser(app.test_client(), "nobody")
    for name, route in PAGES.items():
        assert ask(browser, route, ids, form) == (303 if form == "page" else 401), name


def test_nobody_does_anything_without_a_session(app: Flask, ids: Ids) -> None:
    client = app.test_client()
    for name, route in POSTS.items():
        answer = client.post(route.path.format(**ids))
        assert (answer.status_code, answer.location) == (303, "/login?why=not_done"), name


def test_a_refusal_is_written_down(support: Browser, database: Database) -> None:
    assert support.get("/audit").status_code == 403
    (row,) = audit_rows(database)
    assert (row["action"], row["object_kind"], row["outcome"]) == ("open", "audit", "refused")


def test_the_gate_refuses_a_view_that_forgot_to_declare(
    app: Flask, support: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(app.view_functions, "people.pending", lambda: "everything")
    answer = support.get("/pending")
    assert answer.status_code == 500
    assert "everything" not in answer.text


def test_support_sees_no_fingerprint_and_on_call_does(
    support: Browser, on_call: Browser, notices: dict[str, UUID]
) -> None:
    path = f"/n/{notices['delivered']}"
    assert "fp <code>" not in support.get(path).text
    assert "fp <code>" in on_call.get(path).text


@pytest.mark.parametrize("role", Role)
def test_p7_no_form_of_any_page_shows_a_fingerprint_to_who_may_not_see_them(
    app: Flask, database: Database, ids: Ids, role: Role
) -> None:
    with database.connection() as connection:
        rows = connection.execute("SELECT encode(fingerprint, 'hex') AS hex FROM contact")
        marks = {row["hex"][:6] for row in rows}
    assert marks
    browser = signed_in(app, database, role)
    shown = set()
    for route in PAGES.values():
        for headers, suffix in FORMS.values():
            answer = browser.client.get(route.path.format(**ids) + suffix, headers=headers)
            shown |= {each for each in marks if re.search(rf"(fp <code>|\"){each}", answer.text)}
    assert bool(shown) is may(role, Permission.SEE_FINGERPRINTS)


def test_support_sees_no_host_and_no_pid(
    support: Browser, on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO process (owner, host, pid, workers, version, started_at, seen_at)
               VALUES ('secret-host:4711:x', 'secret-host', 4711, 16, '0.2', db_now(), db_now())"""
        )
    for form in ("/system", "/system?live=off"):
        assert "secret-host" not in support.get(form).text
        assert "4711" not in support.poll(form).text
    assert "secret-host" in on_call.get("/system").text


@pytest.mark.parametrize("role", Role)
def test_only_who_may_link_tickets_can(
    app: Flask, database: Database, notices: dict[str, UUID], role: Role
) -> None:
    browser = signed_in(app, database, role)
    path = f"/n/{notices['complete']}"
    answer = browser.post(f"{path}/tickets", ticket_id="HD-77")
    granted = may(role, Permission.LINK_TICKETS)
    assert answer.status_code == (303 if granted else 403)
    page = browser.get(path).text
    assert ('href="/t/HD-77"' in page) is granted
    assert ('name="ticket_id"' in page) is granted


@pytest.mark.parametrize("path", ["/search", "/logout", "/preferences"])
def test_a_form_without_its_token_is_refused_and_the_page_says_why(
    support: Browser, path: str
) -> None:
    answer = support.client.post(path, data={"q": "T-1001"})
    assert answer.status_code == 403
    assert "earlier sign-in" in answer.text
    assert "Nothing was changed" in answer.text


def test_a_post_from_another_site_is_refused_even_with_the_token(support: Browser) -> None:
    token = csrf_token(support.get("/").text)
    for origin in ("cross-site", "same-site", "none"):
        answer = support.client.post(
            "/search", data={"q": "x", "csrf_token": token}, headers={"Sec-Fetch-Site": origin}
        )
        assert answer.status_code == 403
        assert "another site" in answer.text


def test_a_form_of_another_session_is_refused(
    app: Flask, database: Database, support: Browser, on_call: Browser
) -> None:
    theirs = csrf_token(on_call.get("/").text)
    assert support.post("/search", token=theirs, q="T-1001").status_code == 403


def test_a_form_opened_an_hour_ago_still_works(
    app: Flask, support: Browser, clock: Clock, notices: dict[str, UUID]
) -> None:
    token = csrf_token(support.get("/").text)
    for _ in range(4):
        clock.advance(20 * 60)
        support.get("/")
    assert support.post("/search", token=token, q="T-1001").status_code == 303


def test_an_expired_session_sends_a_page_to_sign_in_and_back(
    support: Browser, clock: Clock
) -> None:
    clock.advance(31 * 60)
    answer = support.get("/pending?stage=accepted")
    assert answer.status_code == 303
    assert answer.location == "/login?next=/pending?stage%3Daccepted&why=ended"


def test_an_expired_session_during_a_poll_answers_401_and_leads_the_whole_page_to_sign_in(
    support: Browser, clock: Clock
) -> None:
    clock.advance(31 * 60)
    answer = support.client.get(
        "/pending", headers=FRAGMENT | {"HX-Current-URL": "http://localhost/pending?stage=unknown"}
    )
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/login?next=/pending?stage%3Dunknown&why=ended"
    assert answer.text == ""


def test_a_search_after_the_session_ended_says_that_it_was_not_done(
    support: Browser, clock: Clock
) -> None:
    token = csrf_token(support.get("/").text)
    clock.advance(31 * 60)
    answer = support.client.post("/search", data={"q": "T-1", "csrf_token": token})
    assert answer.status_code == 303
    page = support.get(str(answer.location))
    assert "that was not done" in page.text


@pytest.mark.parametrize(
    "where",
    [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "/a\nb",
        "",
    ],
)
def test_sign_in_leads_nowhere_but_home(where: str) -> None:
    assert security.local_path(where) == "/"
