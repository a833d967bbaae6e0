"""The notice page on the phone: why it hangs, who stopped it, and the ticket that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from tests import people_seed
from tests.database import rewriting
from tests.people_fates import ACCEPTED, CANCELED, Script, Step
from tests.people_pages import Browser
from tests.web.people.test_notice_page import text_of, timeline_of

if TYPE_CHECKING:
    from notifier.store.database import Database


def seeded(database: Database, script: Script) -> str:
    with database.connection() as connection:
        return f"/n/{people_seed.seed(connection, [script])[script.name]}"


def test_a_mailbox_that_is_full_is_told_at_the_top(support: Browser, database: Database) -> None:
    steps = [*ACCEPTED, Step(6, "email", None, "fact_receipt", attempt=1, actor="provider:postmark",
                             provider="postmark", detail="mailbox_full", tells=0)]  # fmt: skip
    script = Script("full", "email_pending", steps, receipts=[(5, 6, "delayed")])
    path = seeded(database, script)
    assert "It is delayed there." in support.get(path).text
    with database.connection() as connection, rewriting(connection, "receipt"):
        connection.execute("UPDATE receipt SET detail = 'mailbox_full'")
    page = text_of(support.get(path).text)
    assert "because the mailbox is full" in page
    assert "make room in their mailbox" in page
    assert "make room" in support.get(f"{path}?format=json").get_json()["customer_action"]


def test_a_link_that_is_not_given_is_told_at_the_top(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    path = f"/n/{notices['expired_unsent']}"
    assert "the auth service gave no link" not in text_of(support.get(path).text)
    with database.connection() as connection:
        connection.execute(
            "UPDATE delivery SET link_tries = 2 WHERE notice_id = %s AND channel = 'email'",
            [notices["expired_unsent"]],
        )
    page = text_of(support.get(path).text)
    assert "No message left us: the auth service gave no link." in page
    assert "No attempt: the auth service was asked for a link 2 times and gave none." in page


def test_who_stopped_it_and_why_stands_at_the_top(support: Browser, database: Database) -> None:
    steps = [
        *CANCELED[:-3],
        Step(20, None, None, "cancel_recorded", actor="operator:otto",
             evidence={"reason": "T-123 asked for it"}),
        Step(20, "email", "canceled", "operator_stop", actor="operator:otto"),
        Step(20, "sms", "canceled", "operator_stop", actor="operator:otto"),
    ]  # fmt: skip
    script = Script("stopped", "canceled", steps, canceled="operator_stop")
    head = text_of(support.get(seeded(database, script)).text).split("Channels and attempts")[0]
    assert "An operator stopped this notice. No message left us." in head
    assert "Stopped by otto at" in head
    assert "T-123 asked for it" in head


def test_a_provider_that_tells_whole_seconds_says_nothing_before_the_start(
    support: Browser, database: Database
) -> None:
    steps = [
        *ACCEPTED[:5],
        Step(1.4, "email", "accepted", "receipt", occurred=0.35, attempt=1,
             actor="provider:postmark", provider="postmark"),
    ]  # fmt: skip
    timeline = timeline_of(
        support.get(seeded(database, Script("early", "email_pending", steps))).text
    )
    words = ("event_admitted", "attempt_started", "receipt")
    assert sorted(words, key=lambda word: timeline.index(f">{word}</code>")) == list(words)
    assert "clock skew" not in timeline


@pytest.mark.parametrize("typed", ["see T-5", "x" * 129])
def test_a_ticket_that_is_refused_stays_in_its_field_and_is_never_cut(
    support: Browser, notices: dict[str, UUID], typed: str
) -> None:
    path = f"/n/{notices['complete']}"
    assert "maxlength" not in support.get(path).text.split('id="ticket"')[1].split(">")[0]
    answer = support.post(f"{path}/tickets", ticket_id=typed)
    assert answer.status_code == 422
    assert f'value="{typed}"' in answer.text
    assert "x" * 128 not in support.get(path).text


def test_a_ticket_that_was_linked_is_confirmed_to_who_linked_it_for_a_moment(
    support: Browser, on_call: Browser, notices: dict[str, UUID]
) -> None:
    path = f"/n/{notices['complete']}"
    support.post(f"{path}/tickets", ticket_id="HD-77")
    assert "HD-77 is linked." in text_of(support.get(path).text)
    assert "HD-77 is linked." not in text_of(on_call.get(path).text)


def test_the_ids_and_the_ticket_stand_before_the_channels_and_the_basis_after_them(
    support: Browser, notices: dict[str, UUID]
) -> None:
    page = text_of(support.get(f"/n/{notices['complete']}").text)
    places = ["Link a help-desk ticket", "Channels and attempts", "Basis of the decision"]
    assert sorted(places, key=page.index) == places
    assert 'href="/policy/revisions/1"' in support.get(f"/n/{notices['complete']}").text
