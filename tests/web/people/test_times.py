"""Times in the zone that a reader picked: everywhere the same, always named, never in a file."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from notifier.domain.zones import zone_label
from notifier.web.people import times
from tests.people_pages import Browser

if TYPE_CHECKING:
    from notifier.store.database import Database

SUMMER = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)
TIMES = re.compile(r"<time datetime=\"([^\"]+)\">([^<]+)</time>")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("UTC", "UTC"), ("Europe/Berlin", "UTC+2"), ("Asia/Kolkata", "UTC+5:30"),
        ("America/St_Johns", "UTC\N{MINUS SIGN}2:30"), ("Africa/Abidjan", "UTC"),
    ],
)  # fmt: skip
def test_a_zone_is_named_by_its_distance_from_utc(name: str, label: str) -> None:
    assert zone_label(SUMMER.astimezone(ZoneInfo(name))) == label
    assert times.clock(SUMMER, None, ZoneInfo(name)).endswith(f" {label}")


def test_the_day_of_a_time_is_that_of_its_zone() -> None:
    berlin, later = ZoneInfo("Europe/Berlin"), SUMMER + timedelta(hours=3)
    assert times.clock(SUMMER, later, berlin) == "00:30:00 UTC+2"
    assert times.clock(SUMMER, later) == "1 Jul 2026, 22:30:00 UTC"


@pytest.mark.parametrize(
    ("seconds", "short", "long", "offset"),
    [
        (0.9, "0 seconds", "0 seconds", "0:00"),
        (1, "1 second", "1 second", "0:01"),
        (-50, "50 seconds", "50 seconds", "0:50"),
        (59.9, "59 seconds", "59 seconds", "0:59"),
        (60, "1:00", "1:00 minutes", "1:00"),
        (3_599, "59:59", "59:59 minutes", "59:59"),
        (3_729, "1:02:09", "1:02:09 hours", "1:02:09"),
        (183_600, "2 d 03:00", "2 d 03:00", "2 d 03:00"),
    ],
)
def test_a_span_below_a_minute_is_told_in_seconds(
    seconds: float, short: str, long: str, offset: str
) -> None:
    length = timedelta(seconds=seconds)
    assert (times.span(length), times.long_span(length)) == (short, long)
    assert times.stopwatch(length) == offset


def test_what_is_left_below_a_minute_is_told_in_seconds() -> None:
    assert times.left_words(timedelta(seconds=50)) == "50 seconds left"
    assert times.left_words(timedelta(seconds=-50)) == "expired 50 seconds earlier"


def test_no_page_tells_a_span_below_a_minute_in_minutes(
    on_call: Browser, notices: dict[str, UUID]
) -> None:
    paths = ["/pending", "/expired", *(f"/n/{each}" for each in notices.values())]
    for path in paths:
        page = on_call.get(path).text
        assert not re.search(r"(?<![\d:+\N{MINUS SIGN}])0:\d\d(?!:)", page), path


def test_an_hour_that_comes_twice_is_told_apart() -> None:
    berlin, first = ZoneInfo("Europe/Berlin"), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    told = [times.clock(first + timedelta(hours=n), first, berlin) for n in (0, 1)]
    assert told == ["02:30:00 UTC+2", "02:30:00 UTC+1"]


def pick(browser: Browser, zone: str, **more: str) -> None:
    browser.post("/preferences", zone=zone, keys="on", next="/", **more)


def test_every_time_of_every_page_is_told_in_the_readers_zone(
    on_call: Browser, notices: dict[str, UUID]
) -> None:
    pick(on_call, "Asia/Kolkata")
    paths = ("/", "/pending", "/unknown", "/expired", "/halts", "/system", "/exports", "/audit",
             "/a/acct-jana", f"/n/{notices['expired_late_news']}")  # fmt: skip
    for path in paths:
        page = on_call.get(path).text
        found = TIMES.findall(page)
        assert found, path
        for exact, told in found:
            moment = datetime.fromisoformat(exact)
            assert moment.utcoffset() == timedelta(0)
            at = moment.astimezone(ZoneInfo("Asia/Kolkata"))
            assert told.endswith(f"{at:%H:%M:%S} UTC+5:30"), path
        assert "times in Asia/Kolkata (UTC+5:30 now)" in page


def test_the_words_to_tell_the_customer_are_in_the_readers_zone_too(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    pick(support, "Asia/Kolkata")
    with database.connection() as connection:
        row = connection.execute(
            "SELECT expires_at FROM notice WHERE notice_id = %s", [notices["accepted"]]
        ).fetchone()
    assert row is not None
    until = row["expires_at"].astimezone(ZoneInfo("Asia/Kolkata"))
    for answer in (support.get, support.poll):
        assert f"works until {until:%H:%M} UTC+5:30" in answer(f"/n/{notices['accepted']}").text


def test_what_programs_get_stays_in_utc_and_the_manifest_names_the_readers_zone(
    on_call: Browser, notices: dict[str, UUID]
) -> None:
    pick(on_call, "Asia/Kolkata")
    rows = on_call.get("/pending?format=json").get_json()["rows"]
    assert {row["requested_at"][-1] for row in rows} == {"Z"}
    made = on_call.post("/exports/new/pending", format="json")
    export = str(made.location)
    assert on_call.get(f"{export}?format=json").get_json()["reader_time_zone"] == "Asia/Kolkata"
    assert on_call.get(f"{export}?format=json").get_json()["time_zone"] == "UTC"
    assert "+05:30" not in on_call.get(f"{export}/file").text


@pytest.mark.parametrize("odd", ["Mars/Olympus", "../../etc/passwd", '"><script>', "~", ""])
def test_a_zone_that_nobody_knows_is_utc(support: Browser, odd: str) -> None:
    pick(support, odd)
    assert "times in UTC ·" in support.get("/").text


def test_the_browsers_zone_is_kept_by_its_name_and_marked_as_the_browsers(
    support: Browser,
) -> None:
    pick(support, "browser", browser_zone="Europe/Berlin")
    page = support.get("/").text
    assert 'data-zone="Europe/Berlin"' in page
    assert "times in Europe/Berlin (" in page
    pick(support, "browser", browser_zone="")
    assert "times in UTC ·" in support.get("/").text


def test_without_a_script_the_browsers_zone_is_not_offered(support: Browser) -> None:
    page = support.get("/").text
    label = page.split('value="browser"')[0].rpartition("<label")[2]
    assert "data-needs-script hidden" in label


def test_a_form_that_says_nothing_of_the_zone_keeps_it(support: Browser) -> None:
    pick(support, "Europe/Berlin")
    support.post("/preferences", theme="dark", next="/")
    page = support.get("/").text
    assert "times in Europe/Berlin (" in page
    assert 'data-theme="dark"' in page


def test_the_page_of_zones_knows_them_all_and_leads_back(support: Browser) -> None:
    pick(support, "Europe/Berlin")
    page = support.get("/preferences?next=/pending%3Fstage%3Dwaiting").text
    assert page.count("<option") > 300
    assert "<option selected>Europe/Berlin" in page
    assert 'name="next" value="/pending?stage=waiting"' in page
    assert 'name="next" value="/"' in support.get("/preferences?next=//evil.example").text
