"""A provider's pause on the list of pending: told where it holds back rows of the list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests import people_seed
from tests.people_fates import QUEUED, UNKNOWN, Script

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.people_pages import Browser

_BAND = re.compile(r'<p class="halted">(.*?)(?=\n|<header|</p>)')


def bands(page: str) -> list[str]:
    """The bands of the list, in plain words."""
    return [re.sub(r"<[^>]+>", "", each).strip() for each in _BAND.findall(page)]


def seed_queue(database: Database, provider: str, *ages: float) -> None:
    with database.connection() as connection:
        for age in ages:
            script = Script(f"queued-{age:g}", "email_pending", QUEUED, age=age)
            people_seed.seed(connection, [script])
        connection.execute("UPDATE delivery SET provider = %s WHERE state = 'queued'", [provider])


def pause(database: Database, provider: str, minutes: float = 60) -> None:
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO provider_pause
               VALUES (%s, 'auth_error', db_now() - interval '5 min',
                       db_now() + make_interval(mins => %s), 3)""",
            [provider, minutes],
        )


def test_a_pause_that_holds_rows_back_stands_above_them_with_why_until_when_and_the_way_on(
    support: Browser, database: Database
) -> None:
    seed_queue(database, "postmark", 10, 20)
    pause(database, "postmark")
    for answer in (support.get("/pending"), support.poll("/pending?stage=waiting")):
        (band,) = bands(answer.text)
        assert band.startswith("postmark is paused until ")
        assert "the provider does not accept our credentials" in band
        assert "Holds back 2 of this list" in band
        assert 'href="/system"' in answer.text.split('class="halted"')[1].split("<header")[0]


@pytest.mark.parametrize("why_not", ["other provider", "over", "other stage", "due later", "dead"])
def test_a_pause_that_holds_nothing_of_the_list_back_is_not_told_there(
    support: Browser, database: Database, why_not: str
) -> None:
    seed_queue(database, "smtp" if why_not == "other provider" else "postmark", 10)
    pause(database, "postmark", minutes=-1 if why_not == "over" else 10)
    with database.connection() as connection:
        people_seed.seed(connection, [Script("lost", "email_pending", UNKNOWN, age=100)])
        if why_not == "due later":
            connection.execute("UPDATE delivery SET due_at = db_now() + interval '11 min'")
        if why_not == "dead":
            connection.execute("UPDATE delivery SET stop_at = db_now() - interval '1 s'")
    stage = "unknown" if why_not == "other stage" else "all"
    page = support.get(f"/pending?stage={stage}").text
    assert "evt-lost" in page
    assert bands(page) == []


def test_of_a_flood_no_more_than_the_cap_is_looked_at_by_channel(
    support: Browser, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_queue(database, "postmark", 10, 20, 30)
    pause(database, "postmark")
    monkeypatch.setattr("notifier.store.reads.pending.COUNT_CAP", 2)
    (band,) = bands(support.get("/pending").text)
    assert "Holds back 2 or more of this list" in band
