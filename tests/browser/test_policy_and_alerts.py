"""A night with an alert and a change of policy, on a desk and on a phone: no fault on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.browser.test_every_page import fill
from tests.browser.watching import axe_findings, overflow

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from notifier.store.database import Database
    from tests.browser.conftest import OpenPage


def assert_sound(page: Page) -> None:
    assert axe_findings(page) == [], page.url
    assert overflow(page) <= 0, page.url


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 375)])
def test_somebody_takes_an_alert_and_changes_the_policy(
    open_page: OpenPage, database: Database, scheme: Literal["light", "dark"], width: int
) -> None:
    fill(database)
    page, _ = open_page("otto", width, color_scheme=scheme)
    page.get_by_role("link", name="Ready work waits too long (email)").click()
    page.get_by_role("link", name="What to do: runbook").click()
    page.get_by_role("heading", name="What to do", exact=True).wait_for()
    page.go_back()
    page.get_by_label("Note, if there is").fill("looking at the workers")
    page.get_by_role("button", name="I have it").click()
    page.get_by_role("heading", name="In the hand of otto").wait_for()
    assert_sound(page)
    page.goto("/policy")
    page.get_by_label("Text: safety margin").fill("many")
    page.get_by_role("button", name="See what changes").click()
    page.get_by_role("alert").wait_for()
    assert_sound(page)
    page.get_by_role("alert").get_by_role("link", name="Text: safety margin").click()
    page.get_by_label("Text: safety margin").fill("15")
    page.get_by_role("button", name="See what changes").click()
    page.get_by_label("Why, for whoever").fill("Carriers are quick")
    assert_sound(page)
    page.get_by_role("button", name="Keep as revision 3").click()
    page.get_by_role("heading", name="Policy revision 3 is in force").wait_for()
    assert_sound(page)
