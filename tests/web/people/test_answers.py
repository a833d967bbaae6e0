"""What every answer carries, and how trouble is told."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from notifier.signals.judgements import RuleName
from notifier.store.database import Database
from notifier.web.people import blueprint, lists, runbooks
from notifier.web.security import only_on_host
from tests.people_pages import FRAGMENT, Browser, build_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flask import Flask
    from flask.testing import FlaskClient

FILES = ("site.css", "live.js", "page.js", blueprint.HTMX)


def test_every_page_carries_every_protection(support: Browser) -> None:
    for path in ("/", "/pending", "/login", "/nope", "/pending?stage=x", "/pending?format=json"):
        headers = support.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "camera=()" in headers["Permissions-Policy"]
        assert headers["X-Request-Id"]
        for name in ("HX-Request", "HX-Request-Type", "HX-History-Restore-Request", "Cookie"):
            assert name in headers["Vary"]


@pytest.mark.parametrize(
    "word", ["", "?v=", "?v=1", "?v=000000000000", "?v={digest}0", "?w={digest}"]
)
def test_a_file_under_another_word_than_its_digest_is_asked_for_anew(
    support: Browser, word: str
) -> None:
    """Else whoever asks early for a coming release's word fills a shared cache with this one's."""
    digest = hashlib.sha256((blueprint.STATIC / "site.css").read_bytes()).hexdigest()[:12]
    with support.get(f"/static/site.css{word.format(digest=digest)}") as answer:
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-cache")


def test_our_own_files_are_small_and_may_be_kept(app: Flask, support: Browser) -> None:
    with app.test_request_context():
        addresses = {name: blueprint.asset(name) for name in FILES}
    sizes = {}
    for name, address in addresses.items():
        with support.get(address) as answer:
            assert answer.status_code == 200
            assert answer.headers["Cache-Control"] == blueprint.FOR_EVER
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            sizes[name] = len(answer.data)
    assert sizes["site.css"] <= 20_000
    assert sum(size for name, size in sizes.items() if name.endswith(".js")) <= 45_000


def test_the_installed_htmx_is_the_one_that_the_page_expects(support: Browser) -> None:
    content = (blueprint.STATIC / blueprint.HTMX).read_bytes()
    digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
    assert f"sha384-{digest}" == blueprint.HTMX_INTEGRITY
    assert f'integrity="{blueprint.HTMX_INTEGRITY}"' in support.get("/").text


def test_nothing_in_a_page_is_inline(support: Browser) -> None:
    page = support.get("/pending").text
    assert " style=" not in page
    assert "<style" not in page
    assert "<script>" not in page
    assert "http://" not in page.replace("http://127.0.0.1", "")


def test_an_address_that_leads_nowhere_is_told_in_each_form(support: Browser) -> None:
    page = support.get("/no/such/page")
    assert page.status_code == 404
    assert "There is no such page" in page.text
    fragment = support.poll("/no/such/page")
    assert fragment.status_code == 404
    assert fragment.text.startswith('<p class="fault"')
    program = support.get("/no/such/page?format=json")
    assert program.get_json()["code"] == "not_found"


@pytest.mark.parametrize("form", ["page", "fragment", "json"])
def test_p7_a_fault_of_ours_is_told_without_a_value_or_a_stack(
    support: Browser, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("canary jana.moe@mail.example")

    monkeypatch.setattr(lists, "load_pending", fail)
    answer = support.client.get(
        "/pending" + ("?format=json" if form == "json" else ""),
        headers=FRAGMENT if form == "fragment" else {},
    )
    assert answer.status_code == 500
    assert "canary" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["X-Request-Id"] in answer.text
    assert ("<html" in answer.text) is (form == "page")


@pytest.fixture
def away() -> Iterator[FlaskClient]:
    """A browser that carries a session, before a database that nobody reaches."""
    database = Database("postgresql://nobody@127.0.0.1:1/none", acquire_timeout_s=0.2)
    app = build_app(database)
    client = app.test_client()
    with client.session_transaction() as cookie:
        cookie["session"] = "some token"
    app.extensions["notifier.people"] = _with_clock(app)
    yield client
    database.close()


def test_a_database_that_is_away_is_told_as_that_and_never_as_zero(away: FlaskClient) -> None:
    for headers in ({}, FRAGMENT):
        answer = away.get("/pending", headers=headers)
        assert answer.status_code == 503
        assert "The database does not answer" in answer.text
        assert answer.headers["Retry-After"] == "5"


def test_while_the_database_is_away_a_page_says_what_on_call_can_do(away: FlaskClient) -> None:
    page = away.get("/pending").text
    assert "flask doctor" in page
    assert 'href="/runbooks/database_unreachable"' in page
    assert "Sign in" not in page


@pytest.mark.parametrize("rule", RuleName)
def test_every_runbook_can_be_read_while_the_database_is_away(
    away: FlaskClient, rule: RuleName
) -> None:
    answer = away.get(f"/runbooks/{rule}")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert "The database does not answer" in answer.text
    steps = answer.text.split("<h2>What to do</h2>")[1]
    assert "<li>" in steps
    assert "Sign in" not in answer.text


def test_no_other_file_is_read_while_the_database_is_away(
    away: FlaskClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runbooks, "FOLDER", tmp_path)
    (tmp_path / "secret.md").write_text("# Secret\n\ncanary")
    answer = away.get("/runbooks/secret")
    assert answer.status_code == 503
    assert "canary" not in answer.text


def test_whoever_carries_no_session_is_led_to_the_door_while_the_database_is_away(
    away: FlaskClient,
) -> None:
    away.delete_cookie("notifier-loopback")
    answer = away.get("/runbooks/queue_age")
    assert answer.status_code == 303
    assert answer.location.startswith("/login")


def _with_clock(app: Flask) -> object:
    return replace(app.extensions["notifier.people"], now=lambda: datetime.now(UTC))


def test_a_wrong_method_is_told_with_what_is_right(support: Browser) -> None:
    answer = support.client.delete("/pending")
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]


def test_b118_the_log_names_why_a_form_was_refused(
    support: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(
        "notifier.web.people.visit.log.warning", lambda event, **rest: noted.append((event, rest))
    )
    support.client.post("/search", data={"q": "x"})
    support.client.post("/search", headers={"Sec-Fetch-Site": "cross-site"})
    assert [(event, rest["reason"]) for event, rest in noted] == [
        ("post_refused", "csrf_mismatch"),
        ("post_refused", "cross_site"),
    ]


def test_preferences_are_kept_and_odd_ones_are_not(support: Browser) -> None:
    assert support.post("/preferences", theme="dark", next="/pending").location == "/pending"
    page = support.get("/pending").text
    assert 'data-theme="dark"' in page
    assert 'data-keys="off"' in page
    support.post("/preferences", theme='"><script>', keys="on", next="//evil.example")
    assert 'data-theme="auto"' in support.get("/pending").text


def test_a_page_under_another_name_is_told_where_to_ask_and_has_its_looks(
    app: Flask, support: Browser
) -> None:
    only_on_host(app, "http://127.0.0.1", "people")
    page = support.get("/pending", Host="node-7.example:8000")
    assert page.status_code == 400
    assert "not to be had under this address" in page.text
    assert 'href="http://127.0.0.1"' in page.text
    assert "Sign in" not in page.text
    assert support.name not in page.text
    with support.get("/static/site.css", Host="node-7.example:8000") as sheet:
        assert sheet.status_code == 200
