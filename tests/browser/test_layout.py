"""Where things stand: what is done first can be reached, what belongs together lines up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.test_every_page import fill

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator

    from notifier.store.database import Database
    from tests.browser.conftest import OpenPage


def box(found: Locator) -> FloatRect:
    """Where something is drawn."""
    drawn = found.bounding_box()
    assert drawn is not None
    return drawn


def test_taking_an_alert_in_hand_is_above_the_fold_of_a_phone(
    open_page: OpenPage, database: Database
) -> None:
    ids = fill(database)
    page, _ = open_page("otto", 375)
    page.goto(f"/alerts/{ids['alert']}")
    button = box(page.get_by_role("button", name="I have it"))
    assert button["y"] + button["height"] <= 667


@pytest.mark.parametrize("width", [1280, 375])
def test_the_numbers_of_home_stand_in_line(
    open_page: OpenPage, database: Database, width: int
) -> None:
    fill(database)
    page, _ = open_page("otto", width)
    for part in ("b", "a > span", ".spark", "small"):
        found = [box(each) for each in page.locator(f".numbers li {part}").all()]
        rows = {round(each["y"]) for each in found}
        assert len(found) == 4
        assert len(rows) == (1 if width == 1280 else 2), part


def test_the_title_card_of_an_alert_is_filled_and_the_cards_below_share_a_row(
    open_page: OpenPage, database: Database
) -> None:
    ids = fill(database)
    page, _ = open_page("otto", 1280)
    page.goto(f"/alerts/{ids['alert']}")
    card, take = box(page.locator("article.verdict")), box(page.locator(".side"))
    assert take["x"] > card["x"] + card["width"] / 2
    assert take["y"] + take["height"] <= card["y"] + card["height"]
    tops = {round(box(each)["y"]) for each in page.locator(".split > .card").all()}
    assert len(tops) == 1


def test_no_unit_of_the_policy_breaks(open_page: OpenPage, database: Database) -> None:
    fill(database)
    page, _ = open_page("otto", 1280)
    page.goto("/policy")
    page.locator("details.part").evaluate_all("parts => parts.forEach(each => each.open = true)")
    units = page.locator(".value .typed > .soft").all()
    assert len(units) > 20
    assert max(box(each)["height"] for each in units) < 30
