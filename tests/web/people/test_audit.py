"""The audit of looks and acts: for auditors alone, complete, filtered, and itself written down."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from notifier.accounts import people
from notifier.accounts.permissions import Role
from tests.people_pages import PASSWORD, Browser, audit_rows, csrf_token, signed_in

if TYPE_CHECKING:
    from flask import Flask

    from notifier.store.database import Database
    from tests.database import Clock
    from tests.web.people.conftest import SignIn

_NEXT = re.compile(r'rel="next" href="([^"]+)"')


@pytest.fixture
def auditor(sign_in: SignIn) -> Browser:
    return sign_in(Role.AUDITOR)


def rows(browser: Browser, query: str = "") -> list[dict[str, object]]:
    found: list[dict[str, object]] = browser.get(f"/audit?format=json{query}").get_json()["rows"]
    return found


def test_the_page_says_who_looked_for_what_kind_of_thing_and_how_much_was_found(
    support: Browser, auditor: Browser, notices: dict[str, UUID]
) -> None:
    support.find("acct-jana")
    support.get("/t/T-1001")
    support.get("/t/T-nothing")
    page = auditor.get("/audit").text
    for word in (support.name, "look up", "ticket"):
        assert word in page
    assert "T-1001" not in page
    assert "T-nothing" not in page
    told = [(row["action"], row["object_kind"], row["hits"]) for row in rows(auditor)]
    assert ("look_up", "ticket", 1) in told
    assert ("look_up", "ticket", 0) in told


def test_equal_things_have_equal_digests_whether_they_were_found_or_not(
    support: Browser, on_call: Browser, auditor: Browser, notices: dict[str, UUID]
) -> None:
    for browser in (support, on_call):
        browser.get("/t/T-1001")
        browser.get("/t/T-nothing")
    digests = [row["object"] for row in rows(auditor, "&action=look_up")]
    assert len(digests) == 4
    assert len(set(digests)) == 2
    assert all(re.fullmatch(r"[0-9a-f]{16}", str(each)) for each in digests)


def test_p7_no_address_that_was_searched_stands_in_the_audit(
    support: Browser, auditor: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    support.get(str(support.find("jana.moe@mail.example").location))
    for form in ("", "?format=json", "?format=csv", "?format=ndjson"):
        assert "jana" not in auditor.get(f"/audit{form}").text
    assert "destination" in {row["object_kind"] for row in audit_rows(database)}


def test_looking_at_the_audit_is_written_down_with_its_filter(
    auditor: Browser, database: Database
) -> None:
    auditor.get("/audit?action=look_up&person=ada")
    (row,) = audit_rows(database)
    assert (row["person"], row["action"], row["object_kind"], row["object_ref"]) == (
        auditor.name, "list", "audit", "action=look_up&person=ada",
    )  # fmt: skip


def test_filters_by_person_action_kind_and_day_show_what_they_say(
    support: Browser, on_call: Browser, auditor: Browser, clock: Clock, notices: dict[str, UUID]
) -> None:
    support.get("/pending")
    support.get("/t/T-1001")
    on_call.get("/unknown")
    today = f"{clock.now():%Y-%m-%d}"
    assert {row["person"] for row in rows(auditor, f"&person={support.name}")} == {support.name}
    assert {row["action"] for row in rows(auditor, "&action=list&kind=unknown")} == {"list"}
    assert len(rows(auditor, "&action=list&kind=unknown")) == 1
    assert rows(auditor, f"&kind=pending&since={today}&until={today}")
    assert rows(auditor, "&kind=pending&until=2020-01-01") == []
    empty = auditor.get("/audit?person=ghost").text
    assert "The filter hides everything else" in empty


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=yesterday", "since"), ("until=2026-02-30", "until"), ("action=%3Cb%3E", "action"),
        ("person=%22%3E%3Cb%3E", "person"), ("kind=A", "kind"),
    ],
)  # fmt: skip
def test_an_odd_filter_is_named_and_never_guessed(auditor: Browser, query: str, field: str) -> None:
    answer = auditor.get(f"/audit?{query}")
    assert answer.status_code == 422
    assert f"“{field}”" in answer.text
    assert "<b>" not in answer.text.split("<main")[1]


def test_a_slip_in_a_form_names_the_field_as_the_form_does_and_leads_back(
    auditor: Browser,
) -> None:
    page = auditor.get("/audit?since=yesterday&person=ada").text
    assert "the field “from day”, is not as it must be" in page
    assert '<a href="/audit">Open this page without it</a>' in page
    sent = auditor.post("/exports/trail", since="yesterday")
    assert sent.status_code == 422
    assert "The form holds something odd" in sent.text
    assert "Nothing was done." in sent.text


def test_who_read_and_acted_on_one_notice_is_a_filter_of_its_own(
    support: Browser, on_call: Browser, auditor: Browser, notices: dict[str, UUID]
) -> None:
    one, other = notices["complete"], notices["failed"]
    support.get(f"/n/{one}")
    support.get(f"/n/{other}")
    on_call.post(f"/n/{one}/tickets", ticket_id="HD-77")
    told = {
        (row["person"], row["action"], row["object_kind"], row["outcome"])
        for row in rows(auditor, f"&notice={one}")
    }
    assert told == {
        (support.name, "view", "notice", "shown"), (on_call.name, "act", "ticket", "asked"),
        (on_call.name, "act", "ticket", "done"),
    }  # fmt: skip
    page = auditor.get(f"/audit?notice={one}").text
    assert page.count(f'href="/n/{one}"') == 3
    assert f"/audit?notice={one}" in auditor.get(f"/n/{one}").text
    assert "/audit" not in support.get(f"/n/{one}").text
    assert '<option value="ticket">' in page


def test_two_hundred_rows_of_one_instant_page_through_and_new_ones_shift_nothing(
    auditor: Browser, support: Browser, database: Database, clock: Clock
) -> None:
    clock.freeze()
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO read_audit (read_id, at, person, role, action, object_kind, object_ref)
               SELECT gen_random_uuid(), db_now(), 'ada', 'support', 'view', 'notice', 'n' || n
                 FROM generate_series(1, 200) AS n"""
        )
    clock.advance(1)
    seen: list[str] = []
    page = ""
    at: str | None = "/audit?person=ada"
    while at:
        page = auditor.get(at).text
        seen += re.findall(r"<code>(n\d+)</code>", page)
        found = _NEXT.search(page)
        at = found[1].replace("&amp;", "&") if found else None
        with database.connection() as connection:
            connection.execute(
                """INSERT INTO read_audit (read_id, at, person, role, action, object_kind)
                   VALUES (gen_random_uuid(), db_now() + interval '1 s', 'ada', 'support',
                           'view', 'notice')"""
            )
        clock.advance(2)
    assert len(seen) == len(set(seen)) == 200
    assert "+3 new since" in page


def test_sign_ins_are_written_down_those_refused_too_and_no_mistyped_name(
    app: Flask, database: Database
) -> None:
    with database.connection() as connection:
        people.add(connection, "ada", Role.SUPPORT, PASSWORD)
    client = app.test_client()
    for name, password in (("ada", PASSWORD + "x"), ("my secret", "x"), ("ada", PASSWORD)):
        token = csrf_token(client.get("/login").text)
        client.post("/login", data={"csrf_token": token, "username": name, "password": password})
    told = [(row["person"], row["role"], row["outcome"]) for row in audit_rows(database)]
    assert told == [
        ("ada", "support", "refused"), ("nobody", "none", "refused"), ("ada", "support", "done"),
    ]  # fmt: skip


def test_only_auditors_see_the_audit_or_a_way_to_it(app: Flask, database: Database) -> None:
    for role in Role:
        browser = signed_in(app, database, role)
        assert ('href="/audit"' in browser.get("/").text) is (role is Role.AUDITOR)
        assert (browser.get("/audit").status_code == 200) is (role is Role.AUDITOR)
