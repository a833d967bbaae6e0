"""Each part of the policy says for whom a change of it holds, and from when."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from notifier.accounts.permissions import Role
from notifier.domain.policy import default_policy
from notifier.flow.policies import PolicyShelf
from notifier.web.people import policy_words
from tests.web.people.test_policy import check

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.people_pages import Browser
    from tests.web.people.conftest import SignIn

FROM_ADMISSION = "admitted from then on"


@pytest.fixture(autouse=True)
def first_revision(database: Database) -> None:
    PolicyShelf(database).begin(default_policy(), "start")


def times(page: str) -> dict[str, str]:
    """What the page says of each part, by its key."""
    return dict(
        re.findall(r'<div id="part-(\w+)">\s*<p class="when">(.*?)(?=\n|<div|<h2|</p>)', page)
    )


@pytest.mark.parametrize("role", [Role.ON_CALL, Role.SUPPORT])
def test_every_part_says_when_a_change_holds_and_alerts_hold_at_once(
    sign_in: SignIn, role: Role
) -> None:
    page = sign_in(role).get("/policy").text
    told = times(page)
    assert set(told) == {group.key for group in policy_words.GROUPS}
    of_notices = {key for key, text in told.items() if FROM_ADMISSION in text}
    assert of_notices == {"time", "doubt", "pace", "limits"}
    at_once = {key for key, text in told.items() if "at once, for" in text}
    assert at_once == {"pace", "alert", "retention"}
    assert "rules what is admitted" not in page


def test_the_page_of_changes_says_it_of_the_parts_that_change_alone(on_call: Browser) -> None:
    alone = reason_hint(check(on_call, alert__callback_refusals_per_5_min="20").text)
    assert "Alerts: when somebody is paged:" in alone
    assert "Holds at once" in alone
    assert FROM_ADMISSION not in alone
    both = reason_hint(
        check(
            on_call, alert__callback_refusals_per_5_min="20", observation_window__cap_s="200"
        ).text
    )
    assert "Time of a token:" in both
    assert FROM_ADMISSION in both


def reason_hint(page: str) -> str:
    return re.sub(r"<[^>]+>", "", page.partition('id="reason-hint"')[2].partition("</div>")[0])
