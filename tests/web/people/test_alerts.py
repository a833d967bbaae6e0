"""Alerts: who has it, what to do, and whether it was worth the interruption."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from notifier.accounts.permissions import Role
from notifier.store.ledger.pauses import pause
from notifier.store.reads.alerts import load_story
from tests.people_alerts import ended_alert, open_alert
from tests.people_pages import Browser, audit_rows
from tests.people_seed import database_now

if TYPE_CHECKING:
    from uuid import UUID

    from werkzeug.test import TestResponse

    from notifier.store.database import Database
    from notifier.store.reads.alerts import Alert, AlertStory
    from tests.web.people.conftest import SignIn

_VERSION = re.compile(r'name="version" value="(\d+)"')


def put(database: Database, *, ended: bool = False, **changes: Any) -> UUID:
    with database.connection() as connection:
        return (ended_alert if ended else open_alert)(connection, **changes)


def story(database: Database, alert: UUID) -> AlertStory:
    with database.connection() as connection:
        found = load_story(connection, alert)
    assert found is not None
    return found


def stands(database: Database, alert: UUID) -> Alert:
    return story(database, alert).alert


def version(browser: Browser, alert: UUID) -> str:
    found = _VERSION.search(browser.get(f"/alerts/{alert}").text)
    assert found, "the page carries no form"
    return found[1]


def act(browser: Browser, alert: UUID, name: str, **fields: str) -> TestResponse:
    seen = fields.pop("version", None) or version(browser, alert)
    return browser.post(f"/alerts/{alert}/{name}", version=seen, **fields)


def listed(browser: Browser, query: str = "") -> list[str]:
    answer = browser.get(f"/alerts?format=json{query}").json
    assert answer is not None
    return [row["alert_id"] for row in answer["rows"]]


def test_an_alert_tells_what_is_wrong_where_to_see_it_and_what_to_do(
    on_call: Browser, database: Database
) -> None:
    alert = put(database)
    page = on_call.get(f"/alerts/{alert}").text
    assert "Ready work waits too long (email)" in page
    assert "<b>75 s of waiting</b>, limit 60 s, at its worst 90 s" in page
    assert "has stayed below the limit for 300 s" in page
    assert "<dd>12 notices" in page
    assert 'href="/pending?stage=waiting"' in page
    assert 'href="/runbooks/queue_age"' in page
    assert "nobody has it" in page
    assert on_call.get("/pending?stage=waiting").status_code == 200


def test_an_alert_shows_the_limit_that_was_told_and_the_one_by_now_where_they_differ(
    on_call: Browser, database: Database
) -> None:
    same, moved = put(database), put(database, key="sms", threshold_now=45.0)
    assert "limit 60 s, at its worst" in on_call.get(f"/alerts/{same}").text
    assert "limit 60 s as it was told (by now 45 s), at" in on_call.get(f"/alerts/{moved}").text
    page = on_call.get("/alerts").text
    assert page.count("limit 60 s") == 2
    assert page.count("by now 45 s") == 1
    answer = on_call.get("/alerts?format=json").json
    assert answer is not None
    limits = {row["alert_id"]: (row["threshold"], row["threshold_now"]) for row in answer["rows"]}
    assert limits == {str(same): ("60", "60"), str(moved): ("60", "45")}


def test_the_list_is_narrowed_by_state_rule_owner_and_review(
    on_call: Browser, database: Database
) -> None:
    mine = put(database, key="sms")
    put(database, rule="rescues", key="", acknowledged_by="ada",
        acknowledged_at=stands(database, mine).opened_at)  # fmt: skip
    ended = put(database, ended=True)
    put(database, key="never told", state="held", opened_at=None)
    act(on_call, mine, "acknowledge")
    assert len(listed(on_call)) == 3
    assert listed(on_call, "&mine=yes") == [str(mine)]
    assert listed(on_call, "&review=missing") == [str(ended)]
    assert listed(on_call, "&state=resolved") == [str(ended)]
    assert len(listed(on_call, "&state=open")) == 2
    assert listed(on_call, "&rule=queue_age") == [str(mine)]
    assert on_call.get("/alerts?rule=nonsense").status_code == 422
    for query in ("", "?state=open", "?mine=yes", "?review=missing"):
        assert on_call.poll(f"/alerts{query}").status_code == 200
    assert "No alert is like that" in on_call.get("/alerts?rule=expired&mine=yes").text


def test_somebody_takes_an_alert_in_hand_and_gives_it_back(
    on_call: Browser, database: Database
) -> None:
    alert = put(database)
    assert act(on_call, alert, "acknowledge", acknowledge="looking").status_code == 303
    found = stands(database, alert)
    assert (found.acknowledged_by, found.acknowledge_note) == (on_call.name, "looking")
    assert "in hand" in on_call.get("/alerts").text
    assert act(on_call, alert, "give_back").status_code == 303
    assert stands(database, alert).acknowledged_by is None
    (note,) = story(database, alert).notes
    assert note.by == on_call.name


def test_an_alert_that_has_moved_on_is_left_alone_and_shown_as_it_stands(
    on_call: Browser, sign_in: SignIn, database: Database
) -> None:
    alert = put(database)
    seen = version(on_call, alert)
    act(sign_in(Role.ADMIN), alert, "acknowledge")
    answer = act(on_call, alert, "acknowledge", version=seen, acknowledge="mine")
    assert answer.status_code == 409
    assert "has moved on" in answer.text
    assert "In the hand of admin-person" in answer.text
    assert stands(database, alert).acknowledged_by == "admin-person"


def test_an_alert_ended_by_hand_needs_a_word_and_asks_for_its_review(
    on_call: Browser, database: Database
) -> None:
    alert = put(database)
    assert act(on_call, alert, "resolve", resolve=" ").status_code == 422
    assert act(on_call, alert, "resolve", resolve="scaled the workers").status_code == 303
    assert stands(database, alert).resolve_note == "scaled the workers"
    assert "was it worth waking somebody?" in on_call.get(f"/alerts/{alert}").text


def test_a_review_says_what_it_led_to_and_what_should_become_of_the_rule(
    on_call: Browser, database: Database
) -> None:
    alert = put(database, ended=True)
    said = {"led_to_action": "no", "verdict": "tune", "review": "ended by itself"}
    assert act(on_call, alert, "review", **said).status_code == 303
    found = stands(database, alert)
    assert (found.led_to_action, found.review_verdict) == ("no", "tune")
    assert (found.review_what, found.reviewed_by) == ("ended by itself", on_call.name)
    assert "led to nothing, tune" in on_call.get("/alerts").text
    assert act(on_call, alert, "review", verdict="tune", led_to_action="yes").status_code == 303
    assert act(on_call, alert, "review", verdict="burn", led_to_action="yes").status_code == 422


@pytest.mark.parametrize("text", ["call 0160 1234567", "x" * 201, "see <b>"])
def test_a_note_that_cannot_be_kept_is_still_there_to_be_mended(
    on_call: Browser, database: Database, text: str
) -> None:
    alert = put(database)
    answer = act(on_call, alert, "note", note=text)
    assert answer.status_code == 422
    assert text.replace("<", "&lt;").replace(">", "&gt;") in answer.text
    assert story(database, alert).notes == ()


def test_every_act_on_an_alert_is_written_down(on_call: Browser, database: Database) -> None:
    alert = put(database)
    act(on_call, alert, "note", note="the queue grows")
    acts = [each for each in audit_rows(database) if each["action"] == "act"]
    assert [(each["object_kind"], each["object_ref"], each["outcome"]) for each in acts] == [
        ("alert_note", str(alert), "asked"), ("alert_note", str(alert), "done"),
    ]  # fmt: skip
    assert acts[0]["reason"] == "the queue grows"


def test_who_may_only_read_sees_alerts_and_no_form(support: Browser, database: Database) -> None:
    alert = put(database)
    page = support.get(f"/alerts/{alert}").text
    assert "Ready work waits too long" in page
    assert "I have it" not in page
    assert support.post(f"/alerts/{alert}/acknowledge", version="1").status_code == 403
    assert stands(database, alert).acknowledged_by is None


def test_each_rule_is_held_to_what_its_alerts_led_to(on_call: Browser, database: Database) -> None:
    with database.connection() as connection:
        now = database_now(connection)
    for day, led in ((1, "yes"), (2, "no"), (3, "partly"), (40, "no")):
        opened = now - timedelta(days=day)
        put(
            database, ended=True, opened_at=opened, acknowledged_at=opened + timedelta(seconds=90),
            acknowledged_by="ada", led_to_action=led, review_verdict="keep", reviewed_by="ada",
            reviewed_at=now,
        )  # fmt: skip
    page = on_call.get("/alerts/rules").text
    assert "<b>50 %</b> of 3" in page
    assert "90 s" in page
    rows = on_call.get("/alerts/rules?days=90&format=json").json
    assert rows is not None
    assert [(each["rule"], each["fired"], each["led_to_action"]) for each in rows["rows"]] == [
        ("expired", 4, 1)
    ]


def test_home_tells_of_open_alerts_those_that_nobody_has_first(
    on_call: Browser, support: Browser, database: Database
) -> None:
    taken = put(database, key="sms")
    act(on_call, taken, "acknowledge")
    free = put(database)
    page = on_call.get("/").text
    assert page.index(f"/alerts/{free}") < page.index(f"/alerts/{taken}")
    assert page.count('href="/runbooks/queue_age"') == 2
    assert f"/alerts/{free}" not in support.get("/").text


def test_an_alert_back_below_its_limit_is_calm_and_says_since_when_and_when_it_ends(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        now = database_now(connection)
    since = now - timedelta(seconds=40)
    alert = put(database, clear_since=since, value=3.0)
    ends = since + timedelta(seconds=300)
    for path in ("/", f"/alerts/{alert}", "/alerts"):
        page = on_call.get(path).text
        told = re.sub(r"<[^>]+>", "", page)
        assert f"below its limit since {since:%H:%M:%S}" in told
        assert f"ends {ends:%H:%M:%S} UTC if it stays so" in told
        assert "at its worst 90 s of waiting, limit 60 s" in told
        assert "3 s of waiting" not in told
        assert 'class="fault"' not in page
        assert "nobody has it" not in told


def test_an_alert_that_has_ended_shows_its_worst_value(
    on_call: Browser, database: Database
) -> None:
    alert = put(database, ended=True, value=0.0)
    for path in (f"/alerts/{alert}", "/alerts"):
        told = re.sub(r"<[^>]+>", "", on_call.get(path).text)
        assert "at its worst 4.0 % of the notices within 1 h expired, limit 0.5 %" in told
        assert "0.0 %" not in told
        assert "if it stays so" not in told


def test_a_pause_is_shown_with_its_reason(on_call: Browser, database: Database) -> None:
    alert = put(database, rule="provider_paused", key="resend", value=7.0)
    with database.connection() as connection:
        pause(connection, provider="resend", detail="auth_error", seconds=60)
    for path in ("/", f"/alerts/{alert}", "/alerts"):
        told = re.sub(r"<[^>]+>", "", on_call.get(path).text)
        assert "7 s of pause (auth_error), limit 60 s" in told


def test_an_incident_marks_when_an_alert_was_opened(on_call: Browser, database: Database) -> None:
    alert = put(database)
    page = on_call.client.get("/incident", follow_redirects=True).text
    assert f'<a href="/alerts/{alert}">queue_age (email)</a>' in page


def test_there_is_no_alert_that_was_only_held_and_none_by_a_made_up_id(
    on_call: Browser, database: Database
) -> None:
    held = put(database, state="held", opened_at=None)
    assert on_call.get(f"/alerts/{held}").status_code == 404
    assert on_call.post(f"/alerts/{held}/note", version="1", note="x").status_code == 404
