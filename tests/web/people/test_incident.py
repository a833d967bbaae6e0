"""Incident: three panels on one axis, which signal was first, and gaps that are no noughts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from notifier.domain.policy import parse_policy
from notifier.flow.policies import PolicyShelf
from tests.database import Clock
from tests.people_pages import Browser, audit_rows
from tests.signals import seeding

if TYPE_CHECKING:
    from notifier.store.database import Database

NOW = datetime(2026, 1, 31, 12, 30, 20, tzinfo=UTC)
HOUR = "/incident?since=2026-01-31T11:30Z"
FIXED = f"{HOUR}&until=2026-01-31T12:30Z"


@pytest.fixture
def past(database: Database, clock: Clock) -> None:
    """An hour in which the queue grew, then outcomes were unknown, then notices expired."""
    clock.freeze(NOW)
    with database.connection() as connection:
        seeding.span(connection, NOW - timedelta(hours=3), NOW)
        for ago in range(61):
            at = NOW - timedelta(minutes=ago)
            seeding.level(connection, at, pending=ago)
            seeding.queue(connection, at, 90 if ago < 20 else 5)
            seeding.count(connection, at, "created", 4, region="GB", template="password-reset@1")
            seeding.count(connection, at, "accepted", 4, channel="email", reason="x", region="GB")
        for ago in (5, 6):
            at = NOW - timedelta(minutes=ago)
            seeding.count(connection, at, "expired", 2, channel="email", reason="queue_delay")
            seeding.count(connection, at, "unknown", 9, channel="sms", region="DE")


def numbers(browser: Browser, query: str = "") -> list[dict[str, object]]:
    rows: list[dict[str, object]] = browser.get(f"{FIXED}&format=json{query}").get_json()["rows"]
    return rows


def test_a_preset_becomes_times_in_the_address(support: Browser, past: None) -> None:
    for path in ("/incident", "/incident?last=1h"):
        assert support.get(path).headers["Location"] == HOUR
    kept = support.get("/incident?last=3h&channel=sms").headers["Location"]
    assert set(kept.partition("?")[2].split("&")) == {"since=2026-01-31T09:30Z", "channel=sms"}


def test_only_a_range_that_ends_now_refreshes(support: Browser, past: None) -> None:
    assert 'data-live="15"' in support.get(HOUR).text
    assert "data-live" not in support.get(f"{HOUR}&live=off").text
    assert "data-live" not in support.get(FIXED).text


def test_the_panels_share_one_axis_and_one_set_of_marks(support: Browser, past: None) -> None:
    page = support.get(FIXED).text
    plots = re.findall(r'<svg class="plot".*?</svg>', page, re.DOTALL)
    assert len(plots) == 3
    assert len({re.search(r'viewBox="([^"]+)"', each)[1] for each in plots}) == 1  # type: ignore[index]
    times = {tuple(re.findall(r">(\d\d:\d\d)</text>", each)) for each in plots}
    assert len(times) == 1
    marks = {tuple(re.findall(r'<path class="m-crossing" d="([^"]+)"', each)) for each in plots}
    assert len(marks) == 1
    assert all('role="img"' in each and "<title" in each and "<desc" in each for each in plots)


def test_signals_stand_in_the_order_in_which_they_crossed_and_the_first_is_named(
    support: Browser, past: None
) -> None:
    page = support.get(FIXED).text
    assert "First signal: deliveries waited too long in the queue" in page
    order = page.split('<ol class="order">')[1].split("</ol>")[0]
    told = [page.index(words) for words in ("waited too long", "outcomes were unknown", "expired:")]
    assert order.count("<b") == 3
    assert told == sorted(told)
    assert "13:00 after the first" in order


def test_a_policy_that_changes_a_limit_moves_the_crossing(
    support: Browser, database: Database, past: None
) -> None:
    """The page judges by the limits of the alert rules, for the life that they found."""

    def first() -> str:
        told = support.get(FIXED).text.split('<ol class="order">')[1]
        return told.split("</li>")[0]

    assert "waited too long" in first()
    shelf = PolicyShelf(database)
    shelf.begin(parse_policy({"alert": {"queue_age_s": 100.0, "queue_age_share": 0.1}}), "test")
    with database.connection() as connection:
        connection.execute("INSERT INTO alert_watch (life_s) VALUES (1200)")
    assert "waited too long" not in first()
    with database.connection() as connection:
        connection.execute("UPDATE alert_watch SET life_s = 800")
    assert "waited too long" in first()


def test_a_limit_reads_as_it_does_in_the_alert_that_it_belongs_to(
    support: Browser, database: Database, past: None
) -> None:
    """A life that is learnt from events is seldom round."""
    with database.connection() as connection:
        connection.execute("INSERT INTO alert_watch (life_s) VALUES (299.98)")
    page = support.get(FIXED).text
    assert '<span class="soft">limit 30 s' in page
    assert page.count("limit 30 s") == 2
    assert "limit 10.0 %" in page
    assert "29.998" not in page


def test_the_table_under_a_panel_says_what_its_drawing_says(support: Browser, past: None) -> None:
    page = support.get(FIXED).text
    creation = page.split('id="creation-title"')[1].split("</table>")[0]
    assert creation.count("<tr><th>") == 60
    assert sum(map(int, re.findall(r"<td>(\d+)", creation))) == 240


def test_nobody_counted_is_hatched_and_nothing_happened_is_not(
    support: Browser, database: Database, past: None
) -> None:
    assert "not counted" not in support.get(FIXED).text
    quiet = support.get("/incident?since=2026-01-31T10:00Z&until=2026-01-31T11:00Z").text
    assert "Everything was counted, and nothing happened" in quiet
    assert "Queue" in quiet
    with database.connection() as connection:
        connection.execute("UPDATE rollup_span SET counted_until = %s", [NOW - timedelta(hours=1)])
    page = support.get(FIXED).text
    assert "For 60 of 60 minutes nothing is known, because nobody counted" in page
    assert 'fill="url(#p-gap)" d="M68' in page
    assert {row["created"] for row in numbers(support)} == {None}
    assert "nothing happened" not in page


def test_the_present_minute_is_no_gap_while_the_counter_is_at_work(
    support: Browser, past: None
) -> None:
    assert "nobody counted" not in support.get(HOUR).text


@pytest.mark.parametrize(
    ("query", "created", "unknown"),
    [("", 240, 18), ("&channel=sms", 240, 18), ("&channel=email", 240, 0), ("&region=DE", 0, 18),
     ("&template=password-reset@1", 240, 0)],
)  # fmt: skip
def test_filters_narrow_the_numbers(
    support: Browser, past: None, query: str, created: int, unknown: int
) -> None:
    rows = numbers(support, query)
    assert sum(int(str(row["created"])) for row in rows) == created
    assert sum(int(str(row["unknown"])) for row in rows) == unknown


def test_one_event_is_told_from_its_own_trail(
    support: Browser, notices: dict[str, UUID], clock: Clock
) -> None:
    answer = support.get("/incident?event=evt-failed")
    assert answer.status_code == 303
    address = answer.headers["Location"]
    rows = support.get(f"{address}&format=json").get_json()["rows"]
    assert sum(row["created"] for row in rows) == 1
    assert sum(row["refused"] for row in rows) == 1
    assert sum(row["not_accepted"] for row in rows) == 1
    assert max(row["age_max_s"] for row in rows) > 0
    nobody = support.get(address.replace("evt-failed", "evt-nobody")).text
    assert "No notice has this event id" in nobody


def test_what_changed_meanwhile_stands_beside_the_numbers(
    support: Browser, database: Database, past: None
) -> None:
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO halt VALUES (gen_random_uuid(), 'channel:sms', 'x', 'otto',
                   %(now)s - interval '20 min', 'ada', 'over', %(now)s - interval '9 min')""",
            {"now": NOW},
        )
        connection.execute(
            "INSERT INTO template_revision VALUES ('password-reset', '2', '', %s)",
            [NOW - timedelta(minutes=30)],
        )
        connection.execute(
            "INSERT INTO process VALUES ('a', 'h', 1, 1, '9.9', %s, %s)",
            [NOW - timedelta(minutes=40), NOW],
        )
    page = support.get(FIXED).text
    told = page.split('id="markers-title"')[1].split("</ol>")[0]
    words = ("version first seen", "template first seen", "halt engaged", "halt released")
    places = [told.index(each) for each in words]
    assert places == sorted(places)
    assert "by ada" in told
    assert page.count('class="m-change"') == 12


def test_marks_of_one_minute_share_a_sign_so_that_it_can_be_read(
    support: Browser, database: Database, past: None
) -> None:
    with database.connection() as connection:
        for name in ("2", "3", "4"):
            connection.execute(
                "INSERT INTO template_revision VALUES ('password-reset', %s, '', %s)",
                [name, NOW - timedelta(minutes=30)],
            )
    page = support.get(FIXED).text
    assert page.count(">1-3</text>") == 3
    assert page.count("template first seen") == 3


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=yesterday", "since"), ("since=2026-01-32T11:30Z", "since"),
        ("since=2026-01-31T11:30Z&until=2026-01-31T10:30Z", "since"),
        ("since=2026-01-20T11:30Z", "since"), ("since=2026-01-31T11:30Z&channel=fax", "channel"),
        ("since=2026-01-31T11:30Z&region=gb", "region"),
        ("since=2026-01-31T11:30Z&template=%3Cb%3E", "template"),
        ("since=2026-01-31T11:30Z&event=a%20b", "event"), ("last=2y", "last"),
    ],
)  # fmt: skip
def test_an_odd_parameter_is_named(support: Browser, past: None, query: str, field: str) -> None:
    answer = support.get(f"/incident?{query}")
    assert answer.status_code == 422
    assert f"“{field}”" in answer.text


def test_the_sheet_has_a_row_a_minute(support: Browser, past: None) -> None:
    lines = support.get(f"{FIXED}&format=csv").text.splitlines()
    assert len(lines) == 61
    assert lines[0].startswith('"minute","counted","created"')


def test_the_heaviest_day_stays_small(support: Browser, database: Database, past: None) -> None:
    with database.connection() as connection:
        for ago in range(1440):
            at = NOW - timedelta(minutes=ago, days=1)
            for signal in ("created", "accepted", "refused", "not_accepted", "unknown", "expired"):
                seeding.count(connection, at, signal, 100 + 37 * ago % 91, channel="email")
        seeding.span(connection, NOW - timedelta(days=2), NOW - timedelta(days=1))
    address = "/incident?since=2026-01-30T11:30Z&until=2026-01-30T12:30Z"
    assert len(support.get(address).data) <= 60_000
    assert len(support.poll(address).data) <= 25_000
    day = "/incident?since=2026-01-29T12:30Z&until=2026-01-30T12:30Z"
    assert len(support.poll(day).data) <= 25_000


def test_a_look_is_written_down(support: Browser, database: Database, past: None) -> None:
    support.get(f"{FIXED}&channel=sms")
    assert audit_rows(database)[-1]["object_kind"] == "incident"
