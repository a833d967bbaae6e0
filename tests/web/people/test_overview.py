"""Home, system and halts: pauses in plain words, and what is in flight."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from notifier.accounts.permissions import Role
from notifier.store.ledger.halts import in_flight
from notifier.store.reads.halts import load_halts
from tests import people_seed
from tests.people_pages import Browser
from tests.signals import seeding

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.web.people.conftest import SignIn

PAUSE = """INSERT INTO provider_pause (provider, detail, since, until, times)
           VALUES ('postmark', 'auth_error', db_now() - interval '5 min',
                   db_now() + interval '1 h', 3),
                  ('twilio', 'rate_limited', db_now() - interval '2 h',
                   db_now() - interval '1 h', 1)"""


def test_system_says_which_provider_is_paused_why_since_when_how_long_and_how_often(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        connection.execute(PAUSE)
    page = support.get("/system").text
    told = page.split("A provider is paused")[1].split("</article>")[0]
    assert "<b>postmark</b>: the provider does not accept our credentials" in told
    assert "5 min ago" in told
    assert "in 59 min" in told or "in 60 min" in told
    assert "3 times" in told
    assert "twilio" not in told


def test_a_pause_stands_on_the_home_of_on_call_and_not_on_that_of_support(
    support: Browser, on_call: Browser, database: Database
) -> None:
    assert "is paused" not in on_call.get("/").text
    with database.connection() as connection:
        connection.execute(PAUSE)
    for answer in (on_call.get("/"), on_call.poll("/")):
        assert "postmark is paused</strong> until" in answer.text
    assert "is paused" not in support.get("/").text


def test_in_flight_is_what_an_engagement_would_list_lost_workers_included(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    with database.connection() as connection:
        connection.execute(
            "UPDATE attempt SET call_ended = false, outcome = NULL WHERE notice_id = %s",
            [notices["unknown"]],
        )
        listed = in_flight(connection, "all")
        page = load_halts(connection)
    assert {each.event_id for each in listed} == {"evt-on_its_way", "evt-unknown"}
    assert page.in_flight == len(listed)
    assert '<b class="digits">2</b> in flight now' in support.get("/halts").text


def tiles(browser: Browser) -> dict[str, str]:
    """The four numbers of the home page by the address that each leads to."""
    page = browser.get("/").text.split('<ul class="numbers">')[1].split("</ul>")[0]
    return {each.split('"')[0]: each for each in page.split('<a href="')[1:]}


def test_on_call_sees_each_number_s_past_hour_and_its_limit_and_each_leads_to_its_list(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        now = people_seed.database_now(connection)
        ago = now - timedelta(minutes=20)
        seeding.span(connection, now - timedelta(hours=3), now)
        seeding.level(connection, ago, pending=7, unknown=30)
        seeding.count(connection, ago, "refused", 25, channel="email", reason="blocked")
        seeding.count(connection, ago, "expired", 1, reason="unknown")
    shown = tiles(on_call)
    assert set(shown) == {"/pending", "/unknown", "/failures?range=15m", "/expired"}
    limited = {path for path, each in shown.items() if 'class="limit"' in each}
    assert limited == set(shown) - {"/pending"}
    over = {path for path, each in shown.items() if 'class="spark over"' in each}
    assert over == {"/unknown", "/failures?range=15m"}
    bars = {path: each.split('class="grow"')[1].split("/>")[0].count("M")
            for path, each in shown.items()}  # fmt: skip
    assert bars == {"/pending": 1, "/unknown": 1, "/failures?range=15m": 15, "/expired": 20}
    assert 'class="missed"' in shown["/pending"]
    assert 'class="missed"' not in shown["/expired"]


def test_the_home_of_support_is_its_search_box_and_refreshes_nothing(
    support: Browser, on_call: Browser
) -> None:
    page = support.get("/").text
    assert page.index("What does the customer say?") < page.index('id="numbers"')
    assert "data-live" not in page
    assert 'class="spark' not in page
    assert 'data-live="10"' in on_call.get("/").text


def test_an_auditor_sees_up_to_when_the_trail_is_signed(
    sign_in: SignIn, support: Browser, database: Database
) -> None:
    auditor = sign_in(Role.AUDITOR)
    assert "The ends of the trail are not signed" in auditor.get("/").text
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO checkpoint VALUES (1, db_now() - interval '3 min', '', 5, '', 'key-9',
                      '', '', '1', true)"""
        )
    page = auditor.get("/").text
    assert "The trail is signed up to" in page
    assert "<code>key-9</code>" in page
    assert "The trail is signed" not in support.get("/").text


def test_expired_tells_causes_by_the_hour(support: Browser, database: Database) -> None:
    with database.connection() as connection:
        now = people_seed.database_now(connection)
        seeding.span(connection, now - timedelta(hours=30), now)
        seeding.count(connection, now, "expired", 3, reason="queue_delay")
        seeding.count(connection, now, "expired", 2, reason="unknown", channel="sms")
    panel = support.get("/expired").text.split('id="causes-title"')[1].split("</section>")[0]
    told = re.findall(r"</svg> ([a-z ,]+) <b class=\"digits\">(\d+)", panel)
    assert told == [("waited too long", "3"), ("outcome unknown", "2")]
    assert panel.count("<tr><th>") == 24
    assert "not counted" not in panel
    assert "causes-title" not in support.poll("/expired").text


def test_system_says_first_that_nobody_leads_and_shows_processes_before_sweeps(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO sweep_run (name, owner, epoch, started_at, finished_at, rows, runs,
                                      failures)
               VALUES ('expiry', 'a:1:x', 7, db_now() - interval '107 s', db_now(), 0, 9, 0)"""
        )
        connection.execute(
            "INSERT INTO leader VALUES ('main', 'a:1:x', 7, db_now() - interval '90 s')"
        )
    page = support.get("/system").text
    verdict = page.split('<article class="verdict failed">')[1].split("</article>")[0]
    assert "Nobody leads" in verdict
    assert 'href="/runbooks/sweep_stalled"' in verdict
    places = [page.index(f"<h2>{each}</h2>") for each in ("Leader", "Processes", "Sweeps", "Trail")]
    assert places == sorted(places)
    assert "term 7" in page
    assert "epoch" not in page
    with database.connection() as connection:
        connection.execute("UPDATE leader SET until = db_now() + interval '15 s'")
    assert "Nobody leads" not in support.get("/system").text
