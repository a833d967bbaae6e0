"""The notice page in a browser: its fold, its zone, its paper, and nothing secret in any of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from tests import people_seed
from tests.browser.conftest import sign_in
from tests.browser.watching import Watch, axe_findings, overflow
from tests.people_fates import FATES, TEXTED, Script, Step
from tests.people_pages import PASSWORD

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.browser.conftest import OpenPage

LOOKS = [("light", 1280), ("dark", 1280), ("light", 375), ("dark", 375)]
BOUNCED = Script("bounced", "complete", [
    *TEXTED,
    Step(140, "email", "failed", "receipt", occurred=139, attempt=1, actor="provider",
         provider="smtp", detail="mailbox_full", evidence={"code": "552 5.2.2"}),
    Step(150, None, None, "ticket_linked", actor="operator:otto"),
], age=300, basis="delivered", sms="+447700900143", account="acct-jana")  # fmt: skip


@pytest.fixture
def ids(database: Database) -> dict[str, str]:
    """Notices of every fate, and one whose email came back after its text was delivered."""
    with database.connection() as connection:
        found = people_seed.seed(connection, [*FATES, BOUNCED])
    return {name: str(each) for name, each in found.items()}


def pick(page: Page, zone: str) -> None:
    """Through the page of zones, as people do."""
    page.goto("/preferences")
    page.get_by_label("Zone", exact=True).select_option(zone)
    page.get_by_role("button", name="Keep").last.click()
    expect(page.locator("footer")).to_contain_text(f"times in {zone}")


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_the_notice_by_source_and_the_zones_have_no_fault(
    open_page: OpenPage, ids: dict[str, str], scheme: Literal["light", "dark"], width: int
) -> None:
    page, watch = open_page("otto", width, color_scheme=scheme)
    pick(page, "Asia/Kolkata")
    notice = f"/n/{ids['bounced']}"
    paths = (notice, f"{notice}?source=provider", f"/n/{ids['failed']}?source=operator",
             f"/n/{ids['expired_dead_link']}", "/a/acct-jana", "/preferences")  # fmt: skip
    for path in paths:
        page.goto(path)
        assert axe_findings(page) == [], path
        assert overflow(page) <= 0, path
    watch.assert_clean()


def test_in_any_zone_the_advice_is_above_the_fold_and_nothing_is_wider_than_a_small_phone(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, _ = open_page("otto", 375)
    pick(page, "America/St_Johns")
    for name, notice_id in ids.items():
        page.goto(f"/n/{notice_id}")
        box = page.locator(".tell").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 667, name
    page.set_viewport_size({"width": 320, "height": 667})
    for path in ("/", "/pending", "/unknown", "/expired", "/a/acct-jana", f"/n/{ids['bounced']}"):
        page.goto(path)
        assert overflow(page) <= 0, path


def test_the_browsers_zone_is_taken_over_and_told_when_the_browser_moves(
    chromium: Browser, site: str, ids: dict[str, str]
) -> None:
    context = chromium.new_context(base_url=site, timezone_id="Asia/Dubai")
    page = context.new_page()
    watch = Watch(page, site)
    sign_in(page, "ada")
    page.goto("/pending?stage=waiting")
    page.locator("summary").first.click()
    page.get_by_label("This browser's zone Asia/Dubai").check()
    page.get_by_role("button", name="Keep").click()
    expect(page).to_have_url(re.compile(r"/pending\?stage=waiting$"))
    expect(page.locator("tbody time").first).to_have_text(re.compile(r"UTC\+4$"))
    expect(page.locator("footer")).to_contain_text("times in Asia/Dubai (UTC+4 now)")
    expect(page.locator("#zone-moved")).to_be_hidden()
    watch.assert_clean()
    state = context.storage_state()
    context.close()
    moved = chromium.new_context(
        base_url=site, timezone_id="Europe/Lisbon", storage_state=state
    ).new_page()
    moved.goto("/pending")
    expect(moved.locator("#zone-moved")).to_contain_text("This browser is in Europe/Lisbon now")
    expect(moved.locator("tbody time").first).to_have_text(re.compile(r"UTC\+4$"))
    moved.context.close()


def test_without_scripts_the_browsers_zone_is_not_offered_and_any_other_is(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, watch = open_page(java_script_enabled=False)
    page.goto("/pending?stage=waiting")
    page.locator("summary").first.click()
    expect(page.get_by_text("This browser's zone")).to_be_hidden()
    page.get_by_role("link", name="Another zone").click()
    page.get_by_label("Zone", exact=True).select_option("Europe/Berlin")
    page.get_by_role("button", name="Keep").last.click()
    expect(page).to_have_url(re.compile(r"/pending\?stage=waiting$"))
    expect(page.locator("tbody time").first).to_have_text(re.compile(r"UTC\+[12]$"))
    assert watch.faults == []


def test_the_chosen_source_stays_under_refreshes_and_in_the_address(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, watch = open_page("otto")
    page.goto(f"/n/{ids['bounced']}")
    page.get_by_role("link", name="The provider's").click()
    expect(page).to_have_url(re.compile(r"source=provider$"))
    lines = page.locator("#timeline > li")
    expect(lines).to_have_count(2)
    with page.expect_response("**source=provider"):
        page.evaluate("document.body.dispatchEvent(new Event('live:tick'))")
    expect(lines).to_have_count(2)
    page.go_back()
    expect(lines).to_have_count(len(BOUNCED.steps))
    watch.assert_clean()


def test_paper_shows_what_was_folded_who_printed_it_and_no_control(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, _ = open_page()
    path = f"/n/{ids['expired_unsent']}"
    page.goto(path)
    page.emulate_media(media="print")
    expect(page.locator("details.repeats .fine").first).to_be_visible()
    footer = page.locator("footer")
    expect(footer).to_contain_text(re.compile(rf"Printed by ada \(support\) from http\S+{path}"))
    expect(footer).to_contain_text(re.compile(r"made \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"))
    expect(footer).to_contain_text(re.compile(r"request [0-9a-f]{32}"))
    expect(page.get_by_text(re.compile(r"\d+ lines of \d+ recorded steps"))).to_be_visible()
    for control in (".ticket", "#act", ".chips", "button"):
        assert not [each for each in page.locator(control).all() if each.is_visible()], control
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_times_and_spans_stand_in_one_line_where_there_is_room(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, _ = open_page()
    lines = """(found) => found.map((each) => {
        const range = document.createRange();
        range.selectNodeContents(each);
        const boxes = [...range.getClientRects()].map((box) => Math.round(box.bottom / 8));
        return Math.max(...boxes) - Math.min(...boxes); })"""
    page.goto(f"/n/{ids['delivered']}")
    took = page.locator("td[data-label=Took]").evaluate_all(lines)
    page.goto("/pending")
    requested = page.locator("#pending td:nth-child(3)").evaluate_all(lines)
    assert (len(took), len(requested)) == (2, 4)
    assert max(took + requested) <= 1


def test_nothing_moves_for_who_wants_less_motion(open_page: OpenPage, ids: dict[str, str]) -> None:
    page, _ = open_page(reduced_motion="reduce")
    page.goto("/pending")
    moving = """[...document.querySelectorAll("*")].filter((each) => {
        const style = getComputedStyle(each);
        return style.transitionDuration !== "0s" || style.animationName !== "none"; }).length"""
    assert page.evaluate(moving) == 0


def test_p7_nothing_secret_is_in_anything_that_a_browser_gets(
    open_page: OpenPage, ids: dict[str, str]
) -> None:
    page, watch = open_page("otto")
    captured: list[str] = []

    def capture(answer: Response) -> None:
        captured.append(json.dumps([answer.url, answer.all_headers()]))
        if answer.request.method == "GET" and answer.ok and "/static/" not in answer.url:
            captured.append(answer.text())

    page.on("response", capture)
    page.on("console", lambda message: captured.append(message.text))
    page.get_by_role("searchbox").fill("jana.moe@mail.example")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("notices")
    for path in ("/", "/pending", "/unknown", "/expired", "/a/acct-jana", "/system",
                 *(f"/n/{each}" for each in ids.values())):  # fmt: skip
        page.goto(path)
        captured += [page.title(), page.url, page.content(), page.locator("body").inner_text()]
        captured.append(page.evaluate("JSON.stringify([localStorage, sessionStorage, name])"))
    for form in ("json", "csv", "ndjson"):
        for path in ("/pending", f"/n/{ids['bounced']}"):
            captured.append(page.request.get(f"{path}?format={form}").text())
    everything = "\n".join(captured + watch.addresses)
    cookies = {str(each["value"]) for each in page.context.cookies() if "pref" not in each["name"]}
    secrets = {"jana.moe", "moe@", "mail.example", "7700900143", "7700 900143", PASSWORD, *cookies}
    assert len(everything) > 100_000
    assert [each for each in secrets if each in everything] == []
