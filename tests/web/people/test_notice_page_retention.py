"""A notice whose details are past their retention: every form of it works and says what is gone."""

from __future__ import annotations

import csv
import io
import itertools
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from flask import Flask

from notifier.accounts.permissions import Role
from notifier.flow.policies import PolicyShelf
from notifier.flow.retention import retain
from tests import people_pages, people_seed
from tests.people_fates import EXPIRED_UNKNOWN, FATES, Script, Step, admitted
from tests.people_pages import FRAGMENT
from tests.web.people.test_notice_page import text_of

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.database import Clock
    from tests.web.people.conftest import SignIn

DAY_S = 86_400
ERASED = "is past its retention and was erased"
ENDED = [each.name for each in FATES if each.state not in {"email_pending", "text_pending"}]
CHANGES = {"as_of", "receipts", "decision", "deliveries", "details_erased_at"}
"""What of a notice's JSON may be another once its details are gone."""


@pytest.fixture
def sign_in(app: Flask, database: Database) -> SignIn:
    """Signs a new person in each time: no session lasts as long as these tests."""
    numbers = itertools.count(1)
    return lambda role: people_pages.signed_in(app, database, role, f"reader-{next(numbers)}")


def erase(database: Database) -> None:
    with database.connection() as connection:
        while retain(PolicyShelf(database), connection):
            pass


def steps_of(steps: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(steps)))


@pytest.mark.parametrize("name", ENDED)
def test_all_that_the_trail_knows_stays_and_what_is_gone_is_said(
    sign_in: SignIn, notices: dict[str, UUID], database: Database, clock: Clock, name: str
) -> None:
    clock.freeze()
    path = f"/n/{notices[name]}"
    clock.advance(89 * DAY_S)
    auditor = sign_in(Role.AUDITOR)
    page = auditor.get(f"{path}?format=json").get_json()
    steps = steps_of(auditor.get(f"{path}?format=csv").text)
    assert page["details_erased_at"] is None
    assert ERASED not in text_of(auditor.get(path).text)

    clock.advance(2 * DAY_S)
    erase(database)
    auditor = sign_in(Role.AUDITOR)
    later = auditor.get(f"{path}?format=json").get_json()
    assert later["details_erased_at"] is not None
    assert later["receipts"] == []
    for known in (page, later):
        for each in known["deliveries"]:
            each |= {"mask": None, "fingerprint": None}
    same = {key: value for key, value in page.items() if key not in CHANGES - {"deliveries"}}
    assert {key: later[key] for key in same} == same
    assert steps_of(auditor.get(f"{path}?format=csv").text) == steps
    seen = text_of(auditor.get(path).text)
    assert "its details are past their retention" in seen
    attempts = [each for delivery in page["deliveries"] for each in delivery["attempts"]]
    assert (f"What the provider told us {ERASED}" in seen) == bool(attempts)
    assert ("its destination is past its retention" in seen) == bool(attempts)
    assert auditor.client.get(path, headers=FRAGMENT).status_code == 200


def test_what_the_trail_remembers_of_the_event_is_told_as_such(
    sign_in: SignIn, database: Database, clock: Clock
) -> None:
    clock.freeze()
    first, *rest = admitted(sms="no_consent")
    facts = {"mode": "email_only", "signing_key": "k-1", "region": "DE", "locale": "en"}
    first = Step(**first.__dict__ | {"evidence": facts})
    script = Script("kept", "expired", [first, *rest, *EXPIRED_UNKNOWN[3:]], age=1200, life=300)
    with database.connection() as connection:
        path = f"/n/{people_seed.seed(connection, [script])['kept']}"
    clock.advance(91 * DAY_S)
    erase(database)
    support = sign_in(Role.SUPPORT)
    seen = text_of(support.get(path).text)
    assert "Region DE" in seen
    assert f"as it was sent, it {ERASED}" in seen
    assert "this is what the trail keeps of it" in seen
    assert support.get(f"{path}?format=json").get_json()["decision"]["region"] == "DE"


@pytest.mark.parametrize("path", ["/expired?", "/unknown?", "/e/evt-expired_dead_link?"])
def test_lists_and_look_ups_tell_the_same_without_the_details(
    sign_in: SignIn, notices: dict[str, UUID], database: Database, clock: Clock, path: str
) -> None:
    def told() -> Any:
        answer = sign_in(Role.ON_CALL).get(f"{path}format=json")
        return answer.status_code, answer.location, (answer.get_json() or {}).get("rows")

    clock.freeze()
    clock.advance(31 * DAY_S)
    erase(database)
    before = told()
    clock.advance(60 * DAY_S)
    erase(database)
    assert told() == before


def test_acts_and_tickets_still_find_their_notice(
    sign_in: SignIn, notices: dict[str, UUID], database: Database, clock: Clock
) -> None:
    clock.freeze()
    clock.advance(91 * DAY_S)
    erase(database)
    support = sign_in(Role.SUPPORT)
    path = f"/n/{notices['expired_dead_link']}"
    assert support.post(f"{path}/tickets", ticket_id="HD-9").location == path
    assert "HD-9" in support.get(path).text
    assert "delivered dead: the link had expired" in text_of(support.get(path).text)
