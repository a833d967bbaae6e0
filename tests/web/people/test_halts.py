"""Halts: quick to engage, careful to release, never on a state that has moved, never guessed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from notifier.accounts.permissions import Role
from notifier.flow import halts
from notifier.store.reads.halts import load_held_back
from tests import people_seed
from tests.database import rewriting
from tests.people_fates import ON_ITS_WAY, QUEUED, Script, admitted
from tests.people_pages import Browser, audit_rows

if TYPE_CHECKING:
    from werkzeug.test import TestResponse

    from notifier.store.database import Database
    from tests.web.people.conftest import SignIn

TEXT_QUEUED = admitted("sms")
_VERSION = re.compile(r'name="version" value="([0-9a-f]*)"')


@pytest.fixture
def admin(sign_in: SignIn) -> Browser:
    return sign_in(Role.ADMIN)


def version(page: str) -> str:
    found = _VERSION.search(page)
    assert found, "the page carries no form with a version"
    return found[1]


def stop(browser: Browser, kind: str = "all", which: str = "", **fields: str) -> TestResponse:
    seen = fields.pop("version", None) or version(browser.get("/halts").text)
    wish = {"kind": kind, "which": which, "reason": "links lead nowhere"} | fields
    return browser.post("/halts", version=seen, **wish)


def standing(database: Database) -> list[str]:
    return [each.halt.scope for each in halts.standing(database)]


def release_path(database: Database) -> str:
    return f"/halts/{halts.standing(database)[0].halt.halt_id}/release"


@pytest.mark.parametrize(
    ("kind", "which", "scope"),
    [
        ("all", "", "all"),
        ("channel:sms", "ignored", "channel:sms"),
        ("provider", "twilio", "provider:twilio"),
        ("template", "password-reset@1", "template:password-reset@1"),
        ("account", "acct-jana", "account:acct-jana"),
        ("event", "evt-1", "event:evt-1"),
    ],
)
def test_p10_each_of_the_six_scopes_can_be_stopped_from_the_page(
    on_call: Browser, database: Database, kind: str, which: str, scope: str
) -> None:
    answer = stop(on_call, kind, which)
    assert answer.status_code == 303
    (told,) = halts.standing(database)
    assert (told.halt.scope, told.halt.engaged_by) == (scope, on_call.name)
    assert told.halt.reason == "links lead nowhere"


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "provider", "which": ""},
        {"kind": "everything"},
        {"kind": "event", "which": "a b"},
        {"kind": "event", "which": "<b>x"},
        {"reason": "  "},
        {"reason": "x" * 501},
        {"reason": "call jana.moe@mail.example"},
        {"reason": "call +44 7700 900123"},
        {"reason": "see app.example.com/reset?token=x"},
    ],
)
def test_a_scope_or_a_reason_that_says_nothing_is_refused_with_what_was_typed_still_there(
    on_call: Browser, database: Database, wrong: dict[str, str]
) -> None:
    answer = stop(on_call, **({"which": "twilio"} | wrong))
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert "<b>x" not in answer.text
    assert standing(database) == []


def test_a_stale_form_stops_nothing_and_shows_how_it_stands_now(
    on_call: Browser, database: Database
) -> None:
    seen = version(on_call.get("/halts").text)
    halts.engage(database, scope="channel:sms", reason="other trouble", by="cli:root")
    answer = stop(on_call, version=seen)
    assert answer.status_code == 409
    assert "nothing was done" in answer.text
    assert "<code>channel:sms</code>" in answer.text
    assert standing(database) == ["channel:sms"]
    assert stop(on_call, version=version(answer.text)).status_code == 303


def test_a_form_that_is_sent_twice_stops_once(on_call: Browser, database: Database) -> None:
    seen = version(on_call.get("/halts").text)
    first, second = (stop(on_call, version=seen) for _ in range(2))
    assert (first.status_code, second.status_code) == (303, 303)
    assert standing(database) == ["all"]


def test_what_began_before_is_listed_until_nothing_is_in_flight(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed(connection, [Script("early", "email_pending", ON_ITS_WAY, age=20)])
    stop(on_call)
    page = on_call.get("/halts").text
    assert "1 still in flight" in page
    assert ">evt-early</a>" in page
    assert "in effect" not in page
    with database.connection() as connection:
        connection.execute("UPDATE attempt SET resolved_at = db_now(), call_ended = true")
        connection.execute(
            """UPDATE delivery SET state = 'failed', lease_owner = NULL, lease_until = NULL
                WHERE state = 'attempted'"""
        )
    assert "in effect: nothing is in flight" in on_call.poll("/halts").text


def test_p10_the_release_shows_what_would_go_what_is_dead_and_how_fast(
    admin: Browser, database: Database
) -> None:
    halts.engage(database, scope="channel:email", reason="wrong text", by="otto")
    with database.connection() as connection:
        for name, age, life in (("young", 10, 900), ("short", 700, 900), ("dead", 880, 900)):
            script = Script(name, "email_pending", QUEUED, age=age, life=life)
            people_seed.seed(connection, [script])
        connection.execute(
            """INSERT INTO process (owner, host, pid, workers, version, started_at, seen_at)
               VALUES ('a', 'a', 1, 16, '0', db_now(), db_now()),
                      ('b', 'b', 2, 64, '0', db_now(), db_now() - interval '16 s')"""
        )
    page = admin.get(release_path(database)).text
    shown = {
        name: re.findall(r'<b class="digits">(\d+)</b>', text)
        for name, text in re.findall(r"<dt>(.*?)<dd>(.*?)\n", page)
    }
    assert shown["Still valid"] == ["2", "1"]
    assert shown["Dead already"] == ["1"]
    assert "at most 16 at once" in page


def held_cells(page: str) -> dict[str, str]:
    """What each halt in force holds back, in plain words."""
    rows = re.findall(
        r'data-label="Scope"><code>([^<]+)</code>(?:(?!<tr).)*?"Holds back">(.*?)(?=<t|</t|\n)',
        page,
    )
    return {scope: plain(text) for scope, text in rows}


def would_hold(page: str) -> dict[str, str]:
    """What each scope that can be chosen would hold back, in plain words."""
    rows = page.partition('<ul class="looks held">')[2].partition("</ul>")[0].split("<li>")[1:]
    told = (plain(row).partition(": ") for row in rows)
    return {scope: words for scope, _, words in told}


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html).strip()


def seed_backlog(database: Database) -> None:
    """Two emails that could still go, one that is dead, and a text that could go."""
    with database.connection() as connection:
        for name, age in (("young", 10), ("short", 700), ("dead", 880)):
            people_seed.seed(connection, [Script(name, "email_pending", QUEUED, age=age)])
        people_seed.seed(connection, [Script("text", "text_pending", TEXT_QUEUED, age=10)])
        connection.execute("UPDATE delivery SET provider = 'twilio' WHERE channel = 'sms'")


def test_each_halt_in_force_tells_how_much_it_holds_back_and_how_much_of_it_is_dead(
    on_call: Browser, database: Database
) -> None:
    seed_backlog(database)
    for scope in ("all", "channel:email", "provider:twilio", "account:acct-dead", "event:evt-no"):
        halts.engage(database, scope=scope, reason="wrong text", by="otto")
    for page in (on_call.get("/halts").text, on_call.poll("/halts").text):
        assert held_cells(page) == {
            "all": "3 could still go, 1 dead",
            "channel:email": "2 could still go, 1 dead",
            "provider:twilio": "1 could still go",
            "account:acct-dead": "0 could still go, 1 dead",
            "event:evt-no": "nothing",
        }


def test_whoever_may_stop_sees_before_how_much_each_scope_would_hold_back(
    on_call: Browser, support: Browser, database: Database
) -> None:
    seed_backlog(database)
    assert would_hold(on_call.get("/halts").text) == {
        "all": "3 could still go, 1 dead",
        "channel:email": "2 could still go, 1 dead",
        "channel:sms": "1 could still go",
        "provider:twilio": "1 could still go",
        "template:password-reset@1": "3 could still go, 1 dead",
    }
    assert "would hold back" not in support.get("/halts").text


def test_of_a_flood_no_more_than_the_cap_is_looked_at_and_the_page_says_so(
    on_call: Browser, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_backlog(database)
    monkeypatch.setattr("notifier.store.reads.halts.COUNT_CAP", 3)
    halts.engage(database, scope="all", reason="wrong text", by="otto")
    with database.connection() as connection:
        held = load_held_back(connection, ["all"])
    assert held.is_capped
    assert held.of("all").living + held.of("all").dead == 3
    page = on_call.get("/halts").text
    assert held_cells(page)["all"].startswith("at least ")
    assert "Only the first 3 of what waits were looked at" in page


def test_p10_a_release_needs_the_state_that_was_seen_and_happens_once(
    admin: Browser, database: Database
) -> None:
    halts.engage(database, scope="all", reason="drill", by="otto")
    path = release_path(database)
    seen = version(admin.get(path).text)
    halts.engage(database, scope="channel:sms", reason="more", by="otto")
    stale = admin.post(path, version=seen, reason="over")
    assert stale.status_code == 409
    assert "<code>channel:sms</code>" in stale.text
    assert sorted(standing(database)) == ["all", "channel:sms"]
    now = version(stale.text)
    answers = [admin.post(path, version=now, reason="over").status_code for _ in range(2)]
    assert answers == [303, 303]
    assert standing(database) == ["channel:sms"]
    assert "released" in admin.get(path).text


def test_a_halt_that_somebody_else_released_is_told_and_not_released_again(
    admin: Browser, database: Database
) -> None:
    halts.engage(database, scope="all", reason="drill", by="otto")
    path = release_path(database)
    seen = version(admin.get(path).text)
    halts.release(database, scope="all", reason="done", by="cli:root")
    answer = admin.post(path, version=seen, reason="over")
    assert answer.status_code == 409
    assert "By cli:root" in answer.text


def test_halts_that_cannot_be_read_are_unknown_and_never_none(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        connection.execute("ALTER TABLE halt RENAME TO away")
    for answer in (on_call.get("/halts"), on_call.poll("/halts")):
        assert answer.status_code == 503
        assert "not known whether sending is stopped" in answer.text
        assert "Nothing is stopped" not in answer.text
    other = on_call.get("/pending")
    assert other.status_code == 200
    assert "It is not known whether sending is stopped" in other.text


def test_every_act_is_written_down_with_its_end(on_call: Browser, database: Database) -> None:
    seen = version(on_call.get("/halts").text)
    stop(on_call, version=seen)
    stop(on_call, "channel:sms", version=seen)
    stop(on_call, reason=" ")
    acts = [row for row in audit_rows(database) if row["action"] == "act"]
    assert [(each["object_ref"], each["outcome"]) for each in acts] == [
        ("all", "asked"), ("all", "done"), ("channel:sms", "asked"), ("channel:sms", "stale"),
        ("all", "asked"), ("all", "not_done"),
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["json", "ndjson", "csv"])
def test_halts_are_there_for_programs_with_text_that_runs_nowhere(
    on_call: Browser, database: Database, form: str
) -> None:
    halts.engage(database, scope="all", reason="drill", by="otto")
    with database.connection() as connection, rewriting(connection, "halt"):
        connection.execute("UPDATE halt SET reason = '=cmd|calc'")
    answer = on_call.get(f"/halts?format={form}")
    text: dict[str, Any] = {"csv": '"\'=cmd|calc"', "json": '"=cmd|calc"', "ndjson": '"=cmd|calc"'}
    assert text[form] in answer.text
