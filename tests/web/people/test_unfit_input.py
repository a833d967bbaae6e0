"""What no browser of an honest person sends: it costs little, and it breaks nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from flask import Flask, Request
from werkzeug.datastructures import ImmutableMultiDict
from werkzeug.utils import cached_property

from notifier.accounts.permissions import Role
from notifier.domain.policy import default_policy
from notifier.domain.remarks import LONGEST_REASON
from notifier.flow import halts
from notifier.flow.policies import PolicyShelf
from notifier.web.documents import FORM_LIMIT
from tests.people_alerts import open_alert
from tests.people_pages import FRAGMENT, Browser, audit_rows, csrf_token, signed_in
from tests.web.people.test_gate import PAGES, POSTS, ROUTES, Ids
from tests.web.people.test_policy import fields

if TYPE_CHECKING:
    from notifier.store.database import Database

    Fields = ImmutableMultiDict[str, str]

REPEATED = ("@", "<@", " ", "1 ", "+1(", '"\t', "://", "ticket ", "x,")
CPU_LIMIT_S = 2.0
"""An expression that is quadratic in a form's length takes tens of seconds, others milliseconds."""


class Everywhere(ImmutableMultiDict[str, str]):
    """A form or query in which every field but the token holds `value`."""

    value = ""

    def get(self, key: str, *args: Any, **more: Any) -> Any:
        return super().get(key, *args, **more) if key == "csrf_token" else self[key]

    def __getitem__(self, key: str) -> str:
        return super().__getitem__(key) if key == "csrf_token" else self.value


class Nasty(Request):
    """A request as somebody writes it who wants it to take long."""

    @cached_property
    def form(self) -> Fields:
        return Everywhere(super().form)

    @cached_property
    def args(self) -> Fields:
        return Everywhere(super().args)


@pytest.fixture
def admin(app: Flask, database: Database) -> Browser:
    PolicyShelf(database).begin(default_policy(), "start")
    return signed_in(app, database, Role.ADMIN)


@pytest.fixture
def ids(database: Database, notices: dict[str, UUID]) -> Ids:
    halt = halts.engage(database, scope="event:evt-x", reason="drill", by="cli").halt.halt_id
    with database.connection() as connection:
        alert = open_alert(connection)
    made = {"notice": notices["failed"], "halt": halt, "alert": alert, "export": UUID(int=1)}
    return {name: str(each) for name, each in made.items()}


@pytest.mark.parametrize("repeated", REPEATED)
def test_no_text_of_a_form_s_length_keeps_the_interpreter_busy(
    app: Flask, admin: Browser, ids: Ids, repeated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = csrf_token(admin.get("/").text)
    app.request_class = Nasty
    slow = {}
    for start in ("", "+", "<", "1", "?"):
        monkeypatch.setattr(Everywhere, "value", start + repeated * (FORM_LIMIT // len(repeated)))
        for name, route in (PAGES if start == "?" else POSTS).items():
            if name == "sign_out":
                continue
            began = time.thread_time()
            answer = admin.client.open(
                route.path.format(**ids), method=route.method, data={"csrf_token": token}
            )
            took_s = time.thread_time() - began
            if took_s > CPU_LIMIT_S or answer.status_code >= 500:
                slow[start, name] = took_s, answer.status_code
    assert not slow


@pytest.mark.parametrize("place", ["?x=%00", "?x%00=1", "form", "name"])
def test_no_page_takes_what_a_database_cannot_keep(
    app: Flask, admin: Browser, ids: Ids, place: str
) -> None:
    fields = {"form": {"x": "a\0b"}, "name": {"x\0": "a"}}.get(place, {})
    query = place if place.startswith("?") else ""
    odd = {}
    for browser in (admin.client, app.test_client()):
        for name, route in ROUTES.items():
            if fields and route.method == "GET":
                continue
            path = route.path.format(**ids) + query
            status = browser.open(path, method=route.method, data=fields).status_code
            if status != 400:
                odd[name] = status
    assert not odd


@pytest.mark.parametrize("path", ["/login/link/%00", "/runbooks/a%00", "/static/a%00", "/%00"])
def test_a_path_that_no_database_and_no_folder_can_keep_is_no_path(
    admin: Browser, path: str
) -> None:
    assert admin.get(path).status_code in {400, 404}


def test_a_name_that_nobody_can_have_is_refused_before_a_try_is_counted(
    app: Flask, database: Database
) -> None:
    client = app.test_client()
    token = csrf_token(client.get("/login").text)
    fields = {"csrf_token": token, "username": "ada\0", "password": "x"}
    assert client.post("/login", data=fields).status_code == 400
    assert audit_rows(database) == []


@pytest.mark.parametrize(
    "shown",
    ["http://[x", "http://[::1", "//[", "http://a:b/", "/" + "x" * 9000, "", "\\\\"],
)
def test_an_address_that_cannot_be_read_leads_home_after_signing_in(app: Flask, shown: str) -> None:
    headers = {**FRAGMENT, "HX-Current-URL": shown}
    answer = app.test_client().get("/pending", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"].startswith("/login?next=/&")


def test_where_a_page_was_shown_is_where_signing_in_leads(app: Flask) -> None:
    headers = {**FRAGMENT, "HX-Current-URL": "http://127.0.0.1/pending?stage=unknown"}
    answer = app.test_client().get("/pending", headers=headers)
    assert answer.headers["HX-Redirect"].startswith("/login?next=/pending?stage%3Dunknown&")


def test_an_error_whose_page_cannot_be_made_is_answered_all_the_same(app: Flask) -> None:
    del app.jinja_env.filters["iso"]
    answer = app.test_client().get("/nowhere")
    assert (answer.status_code, answer.get_json()["code"]) == (404, "not_found")
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_the_largest_form_there_is_has_room_to_spare(admin: Browser) -> None:
    longest = fields(admin.get("/policy").text) | {"reason": "\N{BULLET}" * LONGEST_REASON}
    assert len(longest) > 50
    assert 4 * len(urlencode(longest)) < FORM_LIMIT
