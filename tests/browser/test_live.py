"""Pages that refresh themselves: they lose nothing of the reader's, and are quiet about nothing."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, Route, expect

from tests import people_seed
from tests.browser.watching import axe_findings
from tests.people_fates import FATES

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.browser.conftest import OpenPage

ASKS = """
    window.asks = [];
    document.addEventListener("htmx:config:request", (event) => window.asks.push(Date.now()));
"""
HEARD = """
    window.heard = [];
    const status = document.getElementById("live-status");
    new MutationObserver(() => window.heard.push(status.textContent))
        .observe(status, {childList: true, characterData: true, subtree: true});
"""
NO_TIMER = """
    const later = window.setTimeout;
    window.setTimeout = (act, wait, ...more) => wait >= 4000 ? 0 : later(act, wait, ...more);
"""
"""For tests that tick by hand: the page's own timer never comes in between."""

HIDE = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"


@pytest.fixture
def ids(database: Database) -> dict[str, str]:
    """Notices of every fate."""
    with database.connection() as connection:
        return {name: str(each) for name, each in people_seed.seed(connection).items()}


def tick(page: Page) -> None:
    """What the page's own timer does, without the wait, and until the answer is in place."""
    with page.expect_response(lambda each: each.request.headers.get("hx-request") == "true"):
        page.evaluate("document.body.dispatchEvent(new Event('live:tick'))")
    expect(page.locator("[aria-busy]")).to_have_count(0)


def test_typing_during_five_ticks_loses_nothing_and_asks_nothing(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, watch = open_page()
    page.clock.install()
    page.goto(f"/n/{ids['email_pending']}")
    field = page.get_by_label("Link a help-desk ticket")
    field.focus()
    asked = len(watch.addresses)
    for letter in "HD-77":
        page.keyboard.type(letter)
        page.clock.run_for(5_100)
    assert len(watch.addresses) == asked
    expect(field).to_have_value("HD-77")
    expect(field).to_be_focused()
    watch.assert_clean()


def test_what_was_typed_is_there_after_five_swaps(
    open_page: OpenPage, database: Database, ids: dict[str, str]
) -> None:
    page, watch = open_page()
    page.add_init_script(NO_TIMER)
    page.goto(f"/n/{ids['email_pending']}")
    field = page.get_by_label("Link a help-desk ticket")
    field.fill("HD-77")
    page.locator("h1").click()
    for number in range(1, 6):
        with database.connection() as connection:
            connection.execute("UPDATE delivery SET link_tries = %s", [number])
        tick(page)
        times = "1 time" if number == 1 else f"{number} times"
        expect(page.locator("#notice")).to_contain_text(f"asked for a link {times} and")
    expect(field).to_have_value("HD-77")
    watch.assert_clean()


def test_opened_details_stay_open_under_a_refresh(open_page: OpenPage, ids: dict[str, str]) -> None:
    page, watch = open_page("otto")
    page.add_init_script(NO_TIMER)
    page.goto("/incident")
    opened = page.locator("#incident details").first
    opened.locator("summary").click()
    for _ in range(5):
        tick(page)
    expect(opened).to_have_attribute("open", "")
    watch.assert_clean()


def test_an_open_dialog_holds_refreshes_back(open_page: OpenPage, ids: dict[str, str]) -> None:
    page, watch = open_page()
    page.clock.install()
    page.goto("/pending")
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('dialog'), {open: true}))"
    )
    asked = len(watch.addresses)
    page.clock.run_for(31_000)
    assert len(watch.addresses) == asked
    page.evaluate("document.querySelector('dialog').remove()")
    with page.expect_response("**/pending"):
        page.clock.run_for(11_000)


def test_a_hidden_tab_asks_nothing_for_a_minute_and_once_when_it_is_seen_again(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, _ = open_page()
    page.clock.install()
    page.goto("/pending")
    page.evaluate(ASKS)
    page.evaluate(HIDE % "true")
    page.clock.run_for(65_000)
    assert page.evaluate("window.asks.length") == 0
    page.evaluate(HIDE % "false")
    with page.expect_response("**/pending"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(9_000)
    assert page.evaluate("window.asks.length") == 1


def test_updates_that_are_paused_stay_paused_when_the_tab_is_seen_again(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, watch = open_page()
    page.clock.install()
    page.goto("/pending")
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile(r"live=off"))
    asked = len(watch.addresses)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(65_000)
    assert len(watch.addresses) == asked
    page.keyboard.press("r")
    expect(page).not_to_have_url(re.compile(r"live=off"))


def test_a_refresh_that_changes_nothing_leaves_the_page_alone_and_moves_its_time(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, watch = open_page("otto")
    page.add_init_script(NO_TIMER)
    page.goto("/halts")
    tick(page)
    page.evaluate(
        """() => { window.swaps = 0; document.addEventListener("htmx:before:swap",
            (event) => { if (event.detail.ctx.swap !== "none") window.swaps += 1; });
            window.kept = document.querySelector("#halts h1"); window.kept.dataset.mine = "1"; }"""
    )
    before = page.locator("#halts").get_attribute("data-as-of")
    with page.expect_response(lambda answer: answer.status == 204):
        page.evaluate(
            """() => new Promise((done) => setTimeout(() => {
                document.body.dispatchEvent(new Event("live:tick")); done(); }, 1100))"""
        )
    expect(page.locator("#halts")).not_to_have_attribute("data-as-of", str(before))
    as_of = str(page.locator("#halts").get_attribute("data-as-of"))
    expect(page.locator("#halts time").first).to_have_text(as_of)
    assert page.evaluate("document.querySelector('#halts h1').dataset.mine") == "1"
    watch.assert_clean()


def test_new_rows_are_announced_once_for_a_batch(
    open_page: OpenPage, database: Database, ids: dict[str, str]
) -> None:
    page, watch = open_page()
    page.add_init_script(NO_TIMER)
    page.goto("/pending")
    page.evaluate(HEARD)
    with database.connection() as connection:
        people_seed.seed_many(connection, 3, FATES[2])
    tick(page)
    expect(page.locator("#live-status")).to_have_text("3 new, now 7 pending")
    assert page.evaluate("window.heard") == ["3 new, now 7 pending"]
    assert page.locator("#live-status").get_attribute("role") == "status"
    tick(page)
    expect(page.locator("#live-status")).to_have_text("")
    watch.assert_clean()


def away(route: Route) -> None:
    route.fulfill(status=503, body="<p>away</p>")


def test_a_failed_refresh_says_last_good_and_two_make_a_banner_that_can_be_read(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, watch = open_page()
    page.add_init_script(NO_TIMER)
    page.goto("/pending")
    as_of = str(page.locator("#pending").get_attribute("data-as-of"))
    assert re.fullmatch(r"\d\d:\d\d:\d\d UTC", as_of)
    page.route("**/pending", away)
    tick(page)
    said = "getComputedStyle(document.querySelector('#pending'), '::before').content"
    assert page.evaluate(said).replace('" "', "").count(as_of) == 1
    expect(page.locator("#live-status")).to_have_text("")
    tick(page)
    expect(page.locator("#live-status")).to_contain_text(f"Not refreshed since {as_of}")
    expect(page.locator("tbody tr")).to_have_count(4)
    assert axe_findings(page) == []
    page.unroute("**/pending")
    tick(page)
    expect(page.locator("[data-stale]")).to_have_count(0)
    expect(page.locator("#live-status")).to_have_text("")
    watch.assert_clean()


def test_after_errors_the_page_asks_ever_more_slowly(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, _ = open_page()
    page.clock.install()
    page.goto("/pending")
    page.evaluate(ASKS)
    page.route("**/pending", away)
    for asks in range(1, 5):
        before = len(page.evaluate("window.asks"))
        while len(page.evaluate("window.asks")) == before:
            page.clock.run_for(1_000)
        expect(page.locator("[data-stale]")).to_have_count(1)
        expect(page.locator("[aria-busy]")).to_have_count(0)
        assert len(page.evaluate("window.asks")) == asks
    asked = page.evaluate("window.asks")
    gaps = [(later - earlier) / 1000 for earlier, later in pairwise(asked)]
    assert gaps[0] >= 15
    assert gaps[1] >= 31
    assert gaps[2] >= 47


def test_on_plain_http_a_copy_button_selects_the_text_and_says_so(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, watch = open_page()
    page.goto(f"/n/{ids['failed']}")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.get_by_role("button", name="Copy event id").click()
    expect(page.locator("#live-status")).to_have_text("Selected: copy it with your keyboard.")
    assert page.evaluate("getSelection().toString()") == "evt-failed"
    watch.assert_clean()
