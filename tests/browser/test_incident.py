"""Incident in a browser: beside each other where there is room, on one sheet of paper, live."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests import people_seed
from tests.browser.test_every_page import fill_signals
from tests.signals import seeding

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

    from notifier.store.database import Database
    from tests.browser.conftest import OpenPage


@pytest.fixture
def signals(database: Database) -> None:
    with database.connection() as connection:
        fill_signals(connection)


def tops(page: Page) -> list[float]:
    boxes = [each.bounding_box() for each in page.locator(".panel").all()]
    return [round(box["y"]) for box in boxes if box]


@pytest.mark.parametrize(("width", "rows"), [(1100, 1), (1440, 1), (1090, 3), (375, 3)])
def test_panels_stand_beside_each_other_from_1100_pixels_on(
    open_page: OpenPage, signals: None, width: int, rows: int
) -> None:
    page, watch = open_page("otto", width)
    page.goto("/incident")
    assert len(tops(page)) == 3
    assert len(set(tops(page))) == rows
    watch.assert_clean()


def test_paper_lies_on_its_side_and_shows_the_numbers(open_page: OpenPage, signals: None) -> None:
    page, _ = open_page("otto")
    page.goto("/incident")
    page.emulate_media(media="print")
    assert len(set(tops(page))) == 1
    expect(page.locator(".figures").first).to_be_visible()
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_a_range_that_ends_now_takes_in_what_is_counted_meanwhile(
    open_page: OpenPage, signals: None, database: Database
) -> None:
    page, watch = open_page("otto")
    page.clock.install()
    page.goto("/incident")
    panel = page.locator(".panel").first
    panel.get_by_text("Numbers", exact=True).click()
    before = panel.locator(".legend b").first.inner_text()
    with database.connection() as connection:
        ago = people_seed.database_now(connection) - timedelta(minutes=5)
        seeding.count(connection, ago, "created", 1000, region="DE")
    page.clock.run_for(16_000)
    expect(panel.locator(".legend b").first).not_to_have_text(before)
    expect(panel.locator(".figures")).to_be_visible()
    watch.assert_clean()


def test_without_a_script_the_filters_work_too(open_page: OpenPage, signals: None) -> None:
    page, _ = open_page("otto", java_script_enabled=False)
    page.goto("/incident")
    page.get_by_role("combobox", name="Channel").select_option("sms")
    page.get_by_role("combobox", name="Region").select_option("GB")
    page.get_by_role("button", name="Show").click()
    assert "channel=sms" in page.url
    assert "region=GB" in page.url
    page.get_by_role("link", name="Past 30 minutes").click()
    assert "last=" not in page.url
    assert "channel=sms" in page.url
    expect(page.locator(".panel")).to_have_count(3)


def crowd(database: Database) -> None:
    """Many changes about the time at which several signals crossed, single ones elsewhere."""
    with database.connection() as connection:
        fill_signals(connection)
        connection.execute(
            """INSERT INTO halt (halt_id, scope, reason, engaged_by, engaged_at, released_by,
                                 release_reason, released_at)
               SELECT gen_random_uuid(), 'channel:email', 'x', 'otto', at, 'ada', 'over',
                      at + interval '20 s'
                 FROM unnest(%s::int[]) AS ago, LATERAL (SELECT db_now() - ago * interval '1 min')
                      AS moment (at)""",
            [[50, 48, 46, 43, 40, 38, 32, 31, 30, 29, 28, 27, 25, 22, 20, 18, 15, 12, 5, 4]],
        )


def meet(one: FloatRect, other: FloatRect) -> bool:
    """Whether two boxes overlap."""
    return (
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    )


@pytest.mark.parametrize("width", [1280, 375])
def test_no_mark_is_written_over_another(
    open_page: OpenPage, database: Database, width: int
) -> None:
    crowd(database)
    page, _ = open_page("otto", width)
    page.goto("/incident")
    for plot in page.locator(".plot").all():
        signs = plot.locator("text.m-crossing, text.m-change").all()
        boxes = [(each.text_content(), each.bounding_box()) for each in signs]
        assert len(boxes) >= 5
        assert [
            (one, other)
            for (one, here), (other, there) in combinations(boxes, 2)
            if here and there and meet(here, there)
        ] == []
