"""Proposals that were learnt from an outage: said beside them, and not put in with a click."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from notifier.domain.policy import default_policy
from notifier.flow.policies import PolicyShelf
from tests import people_seed
from tests.people_alerts import ended_alert, open_alert
from tests.people_fates import TEXTED, Script
from tests.people_pages import Browser

if TYPE_CHECKING:
    from notifier.store.database import Database

BUTTON = "Put the proposals in"


@pytest.fixture(autouse=True)
def texts(database: Database) -> None:
    """So many texts, ten minutes ago, that their queue is measured well enough."""
    PolicyShelf(database).begin(default_policy(), "start")
    with database.connection() as connection:
        people_seed.seed_many(connection, 300, Script("texted", "complete", TEXTED, age=600))


def put(database: Database, *, ended: bool = False, **changes: Any) -> None:
    with database.connection() as connection:
        (ended_alert if ended else open_alert)(connection, **changes)


def reserve(page: str) -> str:
    """What stands beside the fallback reserve's lower bound, without its tags."""
    part = page.split('id="fallback_reserve/floor_s-hint"')[1].partition("</div>")[0]
    return " ".join(re.sub(r"<[^>]+>", "", part).split())


def put_in(browser: Browser) -> str:
    """The reserve's lower bound in the form, once the proposals were put in."""
    answer = browser.post("/policy", revision="1", act="propose")
    assert answer.status_code == 200
    found = re.search(
        r'<input(?=[^>]* name="fallback_reserve/floor_s")[^>]* value="([^"]*)"', answer.text
    )
    assert found
    return found[1]


def test_proposals_of_a_calm_sample_are_put_in_at_a_click(on_call: Browser) -> None:
    page = on_call.get("/policy").text
    proposed = re.search(r"Proposed: (\d+) s", reserve(page))
    assert proposed
    assert "holds the trouble" not in page
    assert BUTTON in page
    assert put_in(on_call) == proposed[1] != f"{default_policy().fallback_reserve.floor_s:g}"


@pytest.mark.parametrize(
    ("rule", "title"),
    [
        ("queue_age", "Ready work waits too long"),
        ("unknown_rate", "Too many unknown outcomes"),
        ("provider_paused", "A provider stays paused"),
    ],
)
def test_proposals_are_not_put_in_while_such_an_alert_is_open(
    on_call: Browser, database: Database, rule: str, title: str
) -> None:
    put(database, rule=rule, key="sms")
    page = on_call.get("/policy").text
    assert "Proposed:" in reserve(page)
    assert f"The sample holds the trouble of {title} (sms): not put in." in reserve(page)
    assert BUTTON not in page
    assert put_in(on_call) == f"{default_policy().fallback_reserve.floor_s:g}"


def test_trouble_that_ended_counts_as_long_as_the_sample_reaches_back_to_it(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        now = people_seed.database_now(connection)
    long_ago = {
        name: now - timedelta(hours=ago)
        for name, ago in (("crossed_at", 3), ("opened_at", 3), ("seen_at", 2), ("resolved_at", 2))
    }
    put(database, ended=True, rule="queue_age", key="sms", **long_ago)
    put(database, rule="local_account_used", key="")
    put(database, rule="unknown_rate", state="held", opened_at=None)
    assert BUTTON in on_call.get("/policy").text, "older, of another kind, or never told"

    put(database, ended=True, rule="queue_age", key="sms")
    page = on_call.get("/policy").text
    assert "trouble of Ready work waits too long (sms)" in reserve(page)
    assert BUTTON not in page
