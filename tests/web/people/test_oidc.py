"""Single sign-on through the pages: a real provider's people, and everything that may go wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from flask import Flask, session

from notifier.accounts import oidc_issuer, oidc_starts, people
from notifier.accounts.oidc_issuer import Issuer
from notifier.accounts.permissions import Role
from notifier.web import security
from tests.database import Clock
from tests.issuers import LyingIssuer, client_at, lying_issuer, real_provider
from tests.people_pages import PASSWORD, Browser, audit_rows, build_app, csrf_token

if TYPE_CHECKING:
    from flask.testing import FlaskClient
    from werkzeug.test import TestResponse

    from notifier.store.database import Database

START = "/login/sso?next=/pending"


@pytest.fixture
def liar() -> Iterator[LyingIssuer]:
    with lying_issuer() as issuer:
        yield issuer


@pytest.fixture
def app(database: Database, liar: LyingIssuer) -> Flask:
    return build_app(database, issuer=Issuer(client_at(liar.url)), local_accounts=False)


def with_local_accounts(database: Database, liar: LyingIssuer, **more: Any) -> Flask:
    return build_app(database, issuer=Issuer(client_at(liar.url)), local_accounts=True, **more)


def come_back(client: FlaskClient, liar: LyingIssuer) -> TestResponse:
    """The whole way, without the pages between."""
    return client.get(liar.authorize(str(client.get(START).location)))


def session_of(client: FlaskClient) -> str | None:
    with client.session_transaction() as cookie:
        return cookie.get("session")


def test_a_real_provider_lets_its_people_in_with_their_role(database: Database) -> None:
    known = {"sub-olga": {"preferred_username": "olga", "groups": ["staff", "auditor"]}}
    with real_provider(known) as url:
        client = build_app(
            database, issuer=Issuer(client_at(url)), local_accounts=False
        ).test_client()
        way_in = str(client.get("/login/sso?next=/audit").location)
        answer = httpx2.post(way_in, data={"sub": "sub-olga"})
        back = urlsplit(answer.headers["location"])
        answered = client.get(f"{back.path}?{back.query}")
        assert (answered.status_code, answered.location) == (303, "/audit")
        assert 'class="role">auditor<' in client.get("/audit").text
        # The same code again, in the same browser: home, and no second session.
        session = session_of(client)
        assert client.get(f"{back.path}?{back.query}").location == "/"
        assert session_of(client) == session
    rows = [row for row in audit_rows(database) if row["action"] == "sign_in"]
    assert [(row["person"], row["role"], row["object_kind"]) for row in rows] == [
        ("olga", "auditor", "oidc")
    ]


def test_what_is_asked_of_the_issuer_carries_state_nonce_and_challenge_and_no_secret(
    app: Flask, liar: LyingIssuer
) -> None:
    asked = []
    for _ in range(2):
        address = str(app.test_client().get(START).location)
        assert address.startswith(f"{liar.url}/authorize?")
        asked.append({key: values[0] for key, values in parse_qs(urlsplit(address).query).items()})
    first, second = asked
    assert first["code_challenge_method"] == "S256"
    assert first["scope"] == "openid profile"
    assert "client_secret" not in first
    for word in ("state", "nonce", "code_challenge"):
        assert len(first[word]) >= 43
        assert first[word] != second[word]


def test_an_answer_belongs_to_the_browser_that_began_and_counts_once(
    app: Flask, liar: LyingIssuer
) -> None:
    victim, thief = app.test_client(), app.test_client()
    back = liar.authorize(str(thief.get(START).location))
    victim.get("/login")
    for path in (back, "/login/sso/return", back.replace("state=", "state=x")):
        answer = victim.get(path)
        assert answer.status_code == 403
        assert "not begun in this browser" in answer.text
    assert session_of(victim) is None
    assert thief.get(back).status_code == 303
    copy = app.test_client()
    assert copy.get(back).status_code == 403


def test_a_way_to_the_issuer_is_taken_once_and_in_time(database: Database, clock: Clock) -> None:
    with database.connection() as connection:
        used, late = (oidc_starts.begin(connection, "a browser", "issuer", "/") for _ in range(2))
        taken = [oidc_starts.take(connection, used.state, "a browser", "issuer") for _ in range(2)]
        assert taken == ["/", None]
        clock.advance(601)
        assert oidc_starts.take(connection, late.state, "a browser", "issuer") is None


def test_a_way_that_takes_longer_than_ten_minutes_is_over(
    app: Flask, liar: LyingIssuer, clock: Clock
) -> None:
    client = app.test_client()
    back = liar.authorize(str(client.get(START).location))
    clock.advance(601)
    assert client.get(back).status_code == 403


def test_a_fresh_session_begins_and_the_cookie_holds_nothing_of_before(
    app: Flask, liar: LyingIssuer
) -> None:
    client = app.test_client()
    client.get("/login")
    with client.session_transaction() as cookie:
        before = dict(cookie)
    assert come_back(client, liar).status_code == 303
    with client.session_transaction() as cookie:
        assert set(cookie) == {"session"}
        assert cookie["session"] not in before.values()


def test_somebody_elses_page_begins_no_sign_in(app: Flask) -> None:
    for origin in ("cross-site", "same-site"):
        answer = app.test_client().get(START, headers={"Sec-Fetch-Site": origin})
        assert (answer.status_code, answer.location) == (303, "/login?next=/pending")


@pytest.mark.parametrize("where", ["//evil.example", "https://evil.example/", "/\\evil.example"])
def test_single_sign_on_leads_nowhere_but_home(app: Flask, liar: LyingIssuer, where: str) -> None:
    client = app.test_client()
    address = str(client.get("/login/sso", query_string={"next": where}).location)
    assert client.get(liar.authorize(address)).location == "/"


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (["staff"], ("You have no role here", "“groups”: support, on-call, auditor, admin.")),
        (["support", "auditor"], ("You have several roles here", "to leave you one of these")),
    ],
)
def test_without_exactly_one_role_a_page_says_what_to_ask_for(
    app: Flask, liar: LyingIssuer, database: Database, groups: list[str], said: tuple[str, ...]
) -> None:
    liar.token_claims = {"groups": groups}
    client = app.test_client()
    answer = come_back(client, liar)
    assert answer.status_code == 403
    for part in said:
        assert part in answer.text
    assert session_of(client) is None
    (row,) = audit_rows(database)
    assert (row["person"], row["outcome"]) == ("nobody", "refused")
    with database.connection() as connection:
        assert people.everybody(connection) == []


def test_the_issuers_no_is_told_in_plain_words(app: Flask, liar: LyingIssuer) -> None:
    client = app.test_client()
    back = liar.authorize(str(client.get(START).location)).replace(
        "code=", "error=access_denied&x="
    )
    answer = client.get(back + "&error_description=<b>boo</b>")
    assert answer.status_code == 403
    assert "Single sign-on said no" in answer.text
    assert "boo" not in answer.text


def test_another_role_at_the_next_sign_in_ends_the_sessions_that_hold_the_one_before(
    app: Flask, liar: LyingIssuer, database: Database
) -> None:
    lost, first, second = app.test_client(), app.test_client(), app.test_client()
    liar.token_claims = {"groups": ["admin"]}
    come_back(lost, liar)
    assert 'class="role">admin<' in lost.get("/").text
    liar.token_claims = {"groups": ["support"]}
    come_back(first, liar)
    come_back(second, liar)
    assert lost.get("/").status_code == 303
    for same in (first, second):
        assert 'class="role">support<' in same.get("/").text


def test_a_person_of_the_issuer_who_is_shut_out_is_out_everywhere(
    app: Flask, liar: LyingIssuer, database: Database
) -> None:
    first, second = app.test_client(), app.test_client()
    come_back(first, liar)
    come_back(second, liar)
    with database.connection() as connection:
        (person,) = people.everybody(connection)
        assert (person.name, person.source, person.has_password) == ("ada", "oidc", False)
        people.disable(connection, "ada")
    assert [each.get("/").status_code for each in (first, second)] == [303, 303]
    answer = come_back(first, liar)
    assert answer.status_code == 403
    assert "Your account here is shut" in answer.text


def test_a_name_that_stands_there_is_nobody_elses(
    app: Flask, liar: LyingIssuer, database: Database
) -> None:
    with database.connection() as connection:
        people.add(connection, "ada", Role.ADMIN, PASSWORD)
    client = app.test_client()
    assert come_back(client, liar).status_code == 303
    assert 'class="role">support<' in client.get("/").text
    liar.token_claims = {"sub": "sub-other", "preferred_username": "a b<script>"}
    come_back(app.test_client(), liar)
    with database.connection() as connection:
        names = [person.name for person in people.everybody(connection)]
    assert names[0] == "ada"
    assert names[1].startswith("ada.sso-")
    assert names[2].startswith("sso-")


def test_local_accounts_are_shut_beside_an_issuer(
    app: Flask, liar: LyingIssuer, database: Database
) -> None:
    with database.connection() as connection:
        people.add(connection, "ada", Role.SUPPORT, PASSWORD)
    client = app.test_client()
    page = client.get("/login").text
    assert 'name="password"' not in page
    assert "Sign in with single sign-on" in page
    with client.session_transaction() as cookie:
        cookie["visit"] = "a visit"
    with app.test_request_context():
        session["visit"] = "a visit"
        token = security.csrf_token()
    fields = {"csrf_token": token, "username": "ada", "password": PASSWORD}
    answer = client.post("/login", data=fields)
    assert (answer.status_code, session_of(client)) == (403, None)
    for method in (client.get, client.post):
        assert method("/login/link/anything").status_code == 403


def local_sign_in(app: Flask) -> Browser:
    client = app.test_client()
    token = csrf_token(client.get("/login").text)
    fields = {"csrf_token": token, "username": "otto", "password": PASSWORD}
    assert client.post("/login", data=fields).status_code == 303
    return Browser(client, "otto")


def test_a_local_account_beside_an_issuer_is_counted_and_ends_when_they_are_shut(
    app: Flask, liar: LyingIssuer, database: Database
) -> None:
    with database.connection() as connection:
        people.add(connection, "otto", Role.SUPPORT, PASSWORD)
    seen: list[tuple[str, str, bool]] = []
    open_app = with_local_accounts(database, liar, count_sign_in=lambda *told: seen.append(told))
    browser = local_sign_in(open_app)
    assert seen == [("password", "done", True)]
    (row,) = audit_rows(database)
    assert (row["object_kind"], row["reason"]) == ("password", "beside single sign-on")
    assert browser.get("/").status_code == 200
    held = browser.client.get_cookie("notifier-loopback")
    assert held is not None
    shut = app.test_client()
    shut.set_cookie("notifier-loopback", held.value)
    assert shut.get("/").status_code == 303


def test_people_of_an_issuer_that_is_no_longer_asked_are_out(
    app: Flask, liar: LyingIssuer, database: Database
) -> None:
    client = app.test_client()
    come_back(client, liar)
    held = client.get_cookie("notifier-loopback")
    assert held is not None
    moved = Issuer(client_at("https://elsewhere.example.test"))
    for issuer in (None, moved):
        other = build_app(database, issuer=issuer).test_client()
        other.set_cookie("notifier-loopback", held.value)
        assert other.get("/").status_code == 303


def test_an_issuer_that_hangs_keeps_nobody_from_a_local_page(
    database: Database, liar: LyingIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc_issuer, "LIMIT_S", 1.0)
    with database.connection() as connection:
        people.add(connection, "otto", Role.SUPPORT, PASSWORD)
    liar.hangs = threading.Event()
    app = with_local_accounts(database, liar)
    answer = app.test_client().get(START)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "Single sign-on does not answer at the moment" in answer.text
    assert 'name="password"' in answer.text
    assert local_sign_in(app).get("/").status_code == 200
    liar.hangs.set()


def test_signing_out_ends_our_session_and_offers_the_issuers_way_out(
    app: Flask, liar: LyingIssuer
) -> None:
    liar.document = {"end_session_endpoint": f"{liar.url}/leave"}
    client = app.test_client()
    come_back(client, liar)
    answer = client.post("/logout", data={"csrf_token": csrf_token(client.get("/").text)})
    assert answer.location == "/login?why=left_here"
    assert client.get("/").status_code == 303
    assert 'href="/login/sso/leave"' in client.get("/login?why=left_here").text
    leaving = str(client.get("/login/sso/leave").location)
    assert leaving.startswith(f"{liar.url}/leave?client_id=reset-notices&")
    assert "id_token" not in leaving


def test_an_issuer_without_a_way_out_is_said_to_have_none(app: Flask) -> None:
    answer = app.test_client().get("/login/sso/leave")
    assert "offers no way to sign out" in answer.text


def test_without_an_issuer_its_addresses_lead_nowhere(database: Database) -> None:
    client = build_app(database).test_client()
    for path in ("/login/sso", "/login/sso/return", "/login/sso/leave"):
        assert client.get(path).status_code == 404
    assert "single sign-on" not in client.get("/login").text
