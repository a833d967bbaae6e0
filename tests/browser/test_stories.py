"""What people do: without scripts, with a page that stays open, with a session that ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from tests import people_seed
from tests.people_fates import FATES, Script
from tests.people_pages import PASSWORD

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.browser.conftest import OpenPage

ADDRESS = "jana.moe@mail.example"


def seed(database: Database) -> dict[str, str]:
    with database.connection() as connection:
        return {name: str(each) for name, each in people_seed.seed(connection).items()}


def tick(page: Page) -> None:
    """What the page's own timer does, without the wait."""
    page.evaluate("document.body.dispatchEvent(new Event('live:tick'))")


def test_without_scripts_an_agent_signs_in_finds_a_ticket_and_reads_what_happened(
    open_page: OpenPage, database: Database
) -> None:
    seed(database)
    page, watch = open_page(None, java_script_enabled=False)
    page.goto("/pending")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile(r"/pending$"))
    page.get_by_role("searchbox").fill("T-1002")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("The text message was delivered")
    expect(page.locator(".tell")).to_contain_text("What to tell the customer")
    expect(page.locator("#timeline")).to_contain_text("The line broke during the call")
    page.get_by_role("link", name="Pending").click()
    page.get_by_role("link", name="Handed over, no news").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert watch.faults == []


def test_b109_an_address_that_is_searched_stands_in_no_address_and_in_no_storage(
    open_page: OpenPage, database: Database
) -> None:
    seed(database)
    page, watch = open_page()
    page.get_by_role("searchbox").fill(ADDRESS)
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("notices")
    page.reload()
    page.get_by_role("link", name="The text message was delivered").click()
    expect(page.locator("#timeline")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("notices")
    assert not [each for each in watch.addresses if "jana" in each or "%40" in each]
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert ADDRESS not in page.content()
    watch.assert_clean()


def test_b114_back_forward_and_a_second_tab_always_show_a_whole_page(
    open_page: OpenPage, database: Database
) -> None:
    ids = seed(database)
    page, watch = open_page()
    page.goto("/pending")
    page.get_by_role("link", name="Unknown outcome").click()
    tick(page)
    page.goto(f"/n/{ids['unknown']}")
    tick(page)
    for move in (page.go_back, page.go_back, page.go_forward, page.go_forward):
        move()
        expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    second = page.context.new_page()
    second.goto(page.url)
    expect(second.get_by_role("navigation", name="Main")).to_be_visible()
    watch.assert_clean()


def test_a_list_refreshes_itself_and_tells_the_new_count_once(
    open_page: OpenPage, database: Database
) -> None:
    seed(database)
    page, watch = open_page()
    page.clock.install()
    page.goto("/pending")
    expect(page.locator("tbody tr")).to_have_count(4)
    with database.connection() as connection:
        people_seed.seed_many(connection, 3, FATES[2])
    page.clock.run_for(11_000)
    expect(page.locator("tbody tr")).to_have_count(7)
    page.clock.run_for(100)
    expect(page.locator("#live-status")).to_contain_text("7")
    assert page.evaluate("document.querySelectorAll('#pending').length") == 1
    watch.assert_clean()


def test_a_pending_notice_follows_what_happens_and_then_stops_asking(
    open_page: OpenPage, database: Database
) -> None:
    ids = seed(database)
    page, watch = open_page()
    page.clock.install()
    page.goto(f"/n/{ids['email_pending']}")
    expect(page.locator(".badge.big")).to_have_text("Waiting")
    with database.connection() as connection:
        connection.execute(
            """UPDATE notice SET state = 'failed' WHERE notice_id = %s""", [ids["email_pending"]]
        )
        connection.execute(
            """UPDATE delivery SET state = 'failed', reason = 'earlier_attempt_found'
                WHERE notice_id = %s AND channel = 'email'""",
            [ids["email_pending"]],
        )
    page.clock.run_for(6_000)
    expect(page.locator(".badge.big")).to_have_text("Failed")
    asked = len(watch.addresses)
    page.clock.run_for(60_000)
    assert len(watch.addresses) == asked
    watch.assert_clean()


def test_a_hidden_tab_asks_nothing_and_catches_up_at_once_when_it_is_seen_again(
    open_page: OpenPage, database: Database
) -> None:
    seed(database)
    page, watch = open_page()
    page.clock.install()
    page.goto("/pending")
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
    page.evaluate(hide % "true")
    asked = len(watch.addresses)
    page.clock.run_for(65_000)
    assert len(watch.addresses) == asked
    page.evaluate(hide % "false")
    with page.expect_response("**/pending"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert len(watch.addresses) == asked + 1


def test_focus_in_a_refreshed_list_stays_where_it_was(
    open_page: OpenPage, database: Database
) -> None:
    seed(database)
    page, _ = open_page()
    page.goto("/pending")
    page.locator("tbody a").nth(2).focus()
    before = page.evaluate("document.activeElement.textContent")
    with page.expect_response("**/pending"):
        tick(page)
    expect(page.locator("tbody a").nth(2)).to_be_focused()
    assert page.evaluate("document.activeElement.textContent") == before


def test_a_refresh_that_fails_keeps_the_rows_dims_them_and_says_since_when(
    open_page: OpenPage, database: Database
) -> None:
    seed(database)
    page, watch = open_page()
    page.goto("/pending")
    expect(page.locator("tbody tr")).to_have_count(4)
    page.route("**/pending", lambda route: route.fulfill(status=503, body="<p>away</p>"))
    for misses in (1, 2):
        tick(page)
        expect(page.locator("#pending")).to_have_attribute("data-stale", "")
        expect(page.locator("#live-status")).to_have_text(
            re.compile("Not refreshed since" if misses > 1 else "^$")
        )
    expect(page.locator("tbody tr")).to_have_count(4)
    page.unroute("**/pending")
    tick(page)
    expect(page.locator("#live-status")).to_be_hidden()
    expect(page.locator("[data-stale]")).to_have_count(0)
    assert watch.faults == []


def test_b116_a_session_that_ends_during_a_poll_leads_the_whole_page_to_sign_in_and_back(
    open_page: OpenPage, database: Database
) -> None:
    seed(database)
    page, watch = open_page()
    page.goto("/pending?stage=accepted")
    with database.connection() as connection:
        connection.execute("UPDATE session SET ended_at = db_now()")
    tick(page)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.locator("table")).to_have_count(0)
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile(r"/pending\?stage=accepted$"))
    watch.assert_clean()


def test_updates_can_be_paused_and_the_address_remembers_it(
    open_page: OpenPage, database: Database
) -> None:
    seed(database)
    page, watch = open_page()
    page.goto("/pending")
    page.get_by_role("link", name="Pause updates").click()
    expect(page).to_have_url(re.compile(r"live=off"))
    asked = len(watch.addresses)
    tick(page)
    expect(page.get_by_role("link", name="Resume updates")).to_be_visible()
    assert len(watch.addresses) == asked


def test_an_id_is_copied_with_one_press(open_page: OpenPage, database: Database) -> None:
    ids = seed(database)
    page, _ = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"/n/{ids['failed']}")
    page.get_by_role("button", name="Copy event id").click()
    expect(page.locator("#live-status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == "evt-failed"


def test_single_keys_work_and_can_be_turned_off(open_page: OpenPage) -> None:
    page, _ = open_page()
    page.goto("/pending")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.locator("h1").click()
    page.keyboard.press("?")
    page.get_by_label("Single keys").uncheck()
    page.get_by_role("button", name="Keep").click()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).not_to_be_focused()


def test_a_chosen_theme_is_there_from_the_first_paint(open_page: OpenPage) -> None:
    page, _ = open_page(color_scheme="light")
    page.locator("summary").click()
    page.get_by_label("Dark").check()
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(14, 17, 22)"


def test_b124_markup_from_outside_runs_nothing(open_page: OpenPage, database: Database) -> None:
    hostile = '<img src=x onerror="window.ran=1"><b hx-get="/logout" hx-trigger="load">'
    with database.connection() as connection:
        people_seed.seed(connection, [FATES[5]])
        connection.execute("UPDATE delivery SET provider = %s, reason = %s", [hostile, hostile])
        connection.execute("UPDATE contact SET mask = %s", [hostile])
    page, watch = open_page("otto")
    for path in ("/pending", "/unknown", f"/e/evt-{FATES[5].name}"):
        page.goto(path)
        tick(page)
    expect(page.get_by_text("<img src=x").first).to_be_visible()
    assert page.evaluate("window.ran") is None
    assert not [each for each in watch.addresses if each.endswith(("/x", "/logout"))]
    watch.assert_clean()


def test_the_unknown_badge_differs_from_the_others_in_shape_word_and_colour(
    open_page: OpenPage, database: Database
) -> None:
    script: Script = FATES[5]
    with database.connection() as connection:
        people_seed.seed(connection, [script, FATES[2], FATES[10]])
    page, _ = open_page()
    page.goto("/pending")
    looks = page.evaluate(
        """[...document.querySelectorAll(".lean b[class]")].map((each) => [
            each.textContent.trim(), each.querySelector("use").getAttribute("href"),
            getComputedStyle(each).backgroundColor])"""
    )
    by_word = {word: (shape, colour) for word, shape, colour in looks}
    shape, colour = by_word.pop("unknown")
    assert shape not in {other for other, _ in by_word.values()}
    assert colour not in {other for _, other in by_word.values()}
