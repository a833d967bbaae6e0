"""Acts of operators: on the state they saw, with a reason, on the trail, and never a send."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from notifier.accounts.permissions import Permission, Role, may
from notifier.domain.remarks import RemarkUnfit, check_remark
from notifier.flow import tickets
from notifier.flow.desk import Asks, Desk
from notifier.flow.policies import PolicyShelf
from notifier.store.ledger import looks
from tests.people_pages import Browser, audit_rows

if TYPE_CHECKING:
    from werkzeug.test import TestResponse

    from notifier.store.database import Database
    from tests.web.people.conftest import SignIn

_VERSION = re.compile(r'name="version" value="(\d+)"')
ACTS = ("look", "note", "stop")


@pytest.fixture(autouse=True)
def _planned(database: Database, notices: dict[str, UUID]) -> None:
    """The unknown outcome can be asked about, in an hour."""
    with database.connection() as connection:
        connection.execute(
            """UPDATE delivery SET next_check_at = db_now() + interval '1 h'
                WHERE notice_id = %s AND state = 'unknown'""",
            [notices["unknown"]],
        )


def act(browser: Browser, notice: UUID, name: str, **fields: str) -> TestResponse:
    path = f"/n/{notice}/{name}"
    wish = {"reason": "HD-12 asks for it"} | fields
    if name == "note":
        wish = {"evidence": "provider_says_sent", "channel": "email"} | wish
    seen = wish.pop("version", None) or version(browser.get(path).text)
    return browser.post(path, version=seen, **wish)


def version(page: str) -> str:
    found = _VERSION.search(page)
    assert found, "the page carries no form with a version"
    return found[1]


def newest(database: Database, notice: UUID) -> dict[str, Any]:
    with database.connection() as connection:
        row = connection.execute(
            """SELECT actor, reason, channel, from_state, to_state, evidence, seq
                 FROM transition WHERE notice_id = %s ORDER BY seq DESC LIMIT 1""",
            [notice],
        ).fetchone()
    assert row is not None
    return row


def delivery(database: Database, notice: UUID) -> dict[str, Any]:
    with database.connection() as connection:
        row = connection.execute(
            """SELECT state, next_check_at <= db_now() AS due, attempts FROM delivery
                WHERE notice_id = %s AND channel = 'email'""",
            [notice],
        ).fetchone()
    assert row is not None
    return row


def test_p4_a_look_asked_for_is_due_at_once_for_the_reconcilers_own_claim(
    on_call: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    notice = notices["unknown"]
    before = delivery(database, notice)
    assert act(on_call, notice, "look").status_code == 303
    after = delivery(database, notice)
    assert (before["due"], after["due"]) == (False, True)
    assert (after["state"], after["attempts"]) == (before["state"], before["attempts"])
    step = newest(database, notice)
    assert (step["actor"], step["reason"]) == (f"operator:{on_call.name}", "look_requested")
    assert step["evidence"] == {"reason": "HD-12 asks for it"}
    with database.connection() as connection:
        claimed = looks.claim(connection, state="unknown", delays_s=[30], batch=5)
    assert [each.notice_id for each in claimed] == [notice]


def test_evidence_stands_beside_the_unknown_outcome_and_changes_no_state(
    on_call: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    notice = notices["unknown"]
    answer = act(on_call, notice, "note", reason="log of 2026-11-30 shows it, id SM123456789abc")
    assert answer.status_code == 303
    step = newest(database, notice)
    assert (step["reason"], step["from_state"], step["to_state"]) == (
        "annotated", "unknown", "unknown",
    )  # fmt: skip
    assert step["evidence"]["evidence"] == "provider_says_sent"
    page = on_call.get(f"/n/{notice}").text
    assert "shows it, id SM123456789abc" in page
    assert f"by operator:{on_call.name}" in page


def test_a_stopped_notice_cancels_what_has_not_left(
    on_call: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    notice = notices["email_pending"]
    assert act(on_call, notice, "stop").status_code == 303
    assert delivery(database, notice)["state"] == "canceled"
    with database.connection() as connection:
        steps = connection.execute(
            "SELECT actor, reason FROM transition WHERE notice_id = %s ORDER BY seq", [notice]
        ).fetchall()
    mine = [row["reason"] for row in steps if row["actor"] == f"operator:{on_call.name}"]
    assert mine[0] == "cancel_recorded"
    assert "operator_stop" in mine
    assert "There is nothing left to stop" in on_call.get(f"/n/{notice}/stop").text


@pytest.mark.parametrize("name", ACTS)
def test_an_act_on_a_state_that_has_moved_is_refused_and_shows_the_new_one(
    on_call: Browser, database: Database, notices: dict[str, UUID], name: str
) -> None:
    notice = notices["unknown"]
    seen = version(on_call.get(f"/n/{notice}/{name}").text)
    asks = {"smtp": Asks(can_find=True, can_poll=False)}
    desk = Desk(database, PolicyShelf(database), announce=lambda entries: None, asks=asks)
    assert tickets.link(database, desk, ticket_id="HD-9", notice_id=notice, by="help desk")
    before = newest(database, notice)
    answer = act(on_call, notice, name, version=seen)
    assert answer.status_code == 409
    assert "nothing was done" in answer.text
    assert version(answer.text) == str(before["seq"])
    assert newest(database, notice) == before
    assert act(on_call, notice, name, version=version(answer.text)).status_code == 303


@pytest.mark.parametrize("name", ACTS)
def test_an_act_that_is_sent_twice_happens_once(
    on_call: Browser, database: Database, notices: dict[str, UUID], name: str
) -> None:
    notice = notices["unknown"]
    seen = version(on_call.get(f"/n/{notice}/{name}").text)
    first = act(on_call, notice, name, version=seen)
    after = newest(database, notice)
    second = act(on_call, notice, name, version=seen)
    assert (first.status_code, second.status_code) == (303, 409)
    assert newest(database, notice) == after


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "jana.moe@mail.example has it", "call +44 7700 900123", "07700900123 says so",
        "see https://auth.example/reset?token=x", "<b>bold</b>", "line\nbreak", "x" * 201,
        "=cmd|calc", "\u202egnp",
    ],
)  # fmt: skip
def test_p7_a_remark_holds_no_address_no_number_no_link_and_no_markup(
    on_call: Browser, database: Database, notices: dict[str, UUID], text: str
) -> None:
    before = newest(database, notices["unknown"])
    answer = act(on_call, notices["unknown"], "note", reason=text)
    assert answer.status_code == 422
    assert newest(database, notices["unknown"]) == before
    assert not [row for row in audit_rows(database) if row["reason"]]


def test_a_remark_may_name_tickets_days_and_message_ids() -> None:
    text = "HD-12: mailed on 2026-11-30 at 14:05, id b7bc2f4a-e38e-4336-af7d-e6c392c2f817"
    assert check_remark(f" {text} ") == text
    with pytest.raises(RemarkUnfit):
        check_remark("2026-11-30 447700900123")


@pytest.mark.parametrize("name", ACTS)
def test_where_an_act_has_no_object_the_page_says_so_and_offers_no_form(
    on_call: Browser, database: Database, notices: dict[str, UUID], name: str
) -> None:
    notice = notices["expired_unsent"]
    page = on_call.get(f"/n/{notice}/{name}").text
    assert 'name="version"' not in page
    before = newest(database, notice)
    answer = act(on_call, notice, name, version=str(before["seq"]))
    assert answer.status_code == 409
    assert "Nothing was done" in answer.text
    assert newest(database, notice) == before


@pytest.mark.parametrize("role", Role)
def test_the_notice_page_offers_acts_to_those_who_may_and_to_nobody_else(
    sign_in: SignIn, notices: dict[str, UUID], role: Role
) -> None:
    browser = sign_in(role)
    path = f"/n/{notices['unknown']}"
    offered = {name for name in ACTS if f'href="{path}/{name}"' in browser.get(path).text}
    assert offered == (set(ACTS) if may(role, Permission.ACT_ON_NOTICES) else set())


def test_an_act_is_written_down_before_it_happens_and_again_with_its_end(
    on_call: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    act(on_call, notices["unknown"], "look")
    act(on_call, notices["unknown"], "stop", version="1")
    acts = [
        (row["object_kind"], row["outcome"], row["reason"])
        for row in audit_rows(database)
        if row["action"] == "act"
    ]
    assert acts == [
        ("look", "asked", "HD-12 asks for it"), ("look", "done", "HD-12 asks for it"),
        ("stop", "asked", "HD-12 asks for it"), ("stop", "stale", "HD-12 asks for it"),
    ]  # fmt: skip


def test_an_act_that_cannot_be_written_down_does_not_happen(
    on_call: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    seen = version(on_call.get(f"/n/{notices['unknown']}/stop").text)
    before = newest(database, notices["unknown"])
    with database.connection() as connection:
        connection.execute("ALTER TABLE read_audit ADD CHECK (action <> 'act')")
    assert act(on_call, notices["unknown"], "stop", version=seen).status_code == 500
    assert newest(database, notices["unknown"]) == before
