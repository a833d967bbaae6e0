"""Why the auth service gave no link: on the notice's page, its twins, and among hindrances."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from notifier.domain.link_faults import LINK_FAULT_WORDS, LinkFault
from tests import people_seed
from tests.people_fates import Script, Step, admitted
from tests.web.people.test_notice_page import text_of, timeline_of

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.people_pages import Browser


def without_link(*details: str | None, name: str = "without-link") -> Script:
    """A notice that asked once for each of these and waits."""
    steps = admitted(sms="no_consent")
    for place, detail in enumerate(details):
        steps += [
            Step(1 + 4 * place, "email", "claimed", "claimed"),
            Step(2 + 4 * place, "email", "queued", "link_unavailable", detail=detail),
        ]
    return Script(name, "email_pending", steps, age=30)


def seeded(database: Database, *details: str | None) -> UUID:
    with database.connection() as connection:
        return people_seed.seed(connection, [without_link(*details)])["without-link"]


@pytest.mark.parametrize("fault", [LinkFault.HTTP_401, LinkFault.RESET_URL_NOT_HTTPS])
def test_a_step_without_a_link_says_why(
    support: Browser, database: Database, fault: LinkFault
) -> None:
    timeline = timeline_of(support.get(f"/n/{seeded(database, fault)}").text)
    words = LINK_FAULT_WORDS[fault]
    assert f"{words[0].upper()}{words[1:]}; the email waits and asks again." in text_of(timeline)
    assert f"<code>{fault}</code>" in timeline


def test_steps_told_as_one_say_what_the_last_one_met(support: Browser, database: Database) -> None:
    notice = seeded(database, "no_answer_in_time", "http_503", "http_401")
    seen = text_of(timeline_of(support.get(f"/n/{notice}").text))
    assert (
        "The auth service was asked 3 times for a link and gave none; the email waits. "
        "Last: the auth service answered 401 when it was asked for the link." in seen
    )
    assert "answered 503" not in seen
    twin = support.get(f"/n/{notice}?format=json").get_json()
    told = [each["detail"] for each in twin["steps"] if each["reason"] == "link_unavailable"]
    assert told == ["http_401"]


@pytest.mark.parametrize("detail", [None, "a_word_of_a_newer_version"])
def test_a_step_without_a_word_that_we_know_says_that_no_link_was_given(
    support: Browser, database: Database, detail: str | None
) -> None:
    seen = text_of(timeline_of(support.get(f"/n/{seeded(database, detail)}").text))
    assert "The auth service gave no link; the email waits and asks again." in seen


def test_pending_counts_what_hinders_work_by_why_no_link_was_given(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 2, without_link("http_401"))
        people_seed.seed_many(connection, 1, without_link(None, "reset_url_not_https", name="b"))
    page = support.get("/pending").text
    [told] = re.findall(r"<p>(What hinders open work:.*?)</p>", page, re.DOTALL)
    assert text_of(told) == (
        "What hinders open work: 2 the auth service answered 401 when it was asked for the link; "
        "it is asked again link_unavailable http_401 · "
        "1 the auth service's reset_url was not https; "
        "it is asked again link_unavailable reset_url_not_https ."
    )
