"""What operators and auditors do: stop sending, act on a notice, take a file out and check it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import expect

from notifier.accounts import people
from notifier.accounts.permissions import Role
from notifier.flow import halts
from tests import people_seed
from tests.browser.watching import axe_findings, overflow
from tests.people_pages import PASSWORD

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.browser.conftest import OpenPage

LOOKS = [("light", 1280), ("dark", 1280), ("light", 375), ("dark", 375)]


@pytest.fixture(autouse=True)
def _accounts(database: Database, site: str) -> None:
    """Beside the two that every browser test has."""
    with database.connection() as connection:
        people.add(connection, "ruth", Role.AUDITOR, PASSWORD)
        people.add(connection, "adam", Role.ADMIN, PASSWORD)


def test_without_scripts_on_call_stops_text_messages_and_an_admin_lets_them_go_on(
    open_page: OpenPage, database: Database
) -> None:
    page, watch = open_page("otto", java_script_enabled=False)
    page.get_by_role("link", name="Halts", exact=True).click()
    page.get_by_label("What to stop").select_option("channel:sms")
    page.get_by_label("Reason, for whoever").fill("the provider bills twice")
    page.get_by_role("button", name="Stop sending").click()
    expect(page.locator("#halts")).to_contain_text("in effect: nothing is in flight")
    page.get_by_role("link", name="Pending").click()
    expect(page.get_by_label("Sending is stopped")).to_contain_text("the provider bills twice")
    assert [each.halt.scope for each in halts.standing(database)] == ["channel:sms"]

    other, _ = open_page("adam", java_script_enabled=False)
    other.goto("/halts")
    other.get_by_role("link", name="Let it go on").click()
    expect(other.locator(".verdict")).to_contain_text("Still valid")
    other.get_by_label("Reason, for whoever").fill("mended")
    other.get_by_role("button", name="Let it go on").click()
    expect(other.get_by_role("heading", name="Nothing is stopped")).to_be_visible()
    assert halts.standing(database) == []
    assert watch.faults == []


def test_an_auditor_takes_a_list_out_and_its_digest_is_that_of_the_file(
    open_page: OpenPage, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed(connection)
    page, watch = open_page("ruth")
    page.goto("/pending?stage=accepted")
    page.get_by_role("link", name="Export all").click()
    page.get_by_label("JSON, without loss", exact=True).check()
    page.get_by_role("button", name="Export", exact=True).click()
    expect(page.locator(".badge.big")).to_have_text("ready")
    told = page.locator("dd code").first.text_content()
    with page.expect_download() as downloading:
        page.get_by_role("link", name=re.compile("Download pending-")).click()
    data = Path(downloading.value.path()).read_bytes()
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download its manifest").click()
    manifest = json.loads(Path(downloading.value.path()).read_bytes())
    assert hashlib.sha256(data).hexdigest() == manifest["sha256"] == told
    assert manifest["filter"]["words"] == "stage is accepted"
    assert [row["event_id"] for row in json.loads(data)["rows"]] == ["evt-accepted"]
    page.goto("/audit?action=export")
    expect(page.locator("tbody tr").first).to_contain_text("ruth")
    watch.assert_clean()


def test_without_scripts_on_call_stops_a_notice_and_the_trail_says_who_it_was(
    open_page: OpenPage, database: Database
) -> None:
    with database.connection() as connection:
        ids = people_seed.seed(connection)
    page, watch = open_page("otto", java_script_enabled=False)
    page.goto(f"/n/{ids['email_pending']}")
    page.get_by_role("link", name="Stop this notice").click()
    page.get_by_label("Reason, or the ticket").fill("HD-12 asks for it")
    page.get_by_role("button", name="Stop it").click()
    expect(page.locator("#timeline")).to_contain_text("by operator:otto")
    expect(page.locator("#timeline")).to_contain_text("HD-12 asks for it")
    assert watch.faults == []


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_no_page_of_operators_and_auditors_has_a_fault(
    open_page: OpenPage, database: Database, scheme: Literal["light", "dark"], width: int
) -> None:
    with database.connection() as connection:
        ids = people_seed.seed(connection)
    halt = halts.engage(database, scope="channel:sms", reason="drill", by="otto").halt.halt_id
    unknown = ids["unknown"]
    seen = {
        "otto": ["/halts", *(f"/n/{unknown}/{act}" for act in ("look", "note", "stop"))],
        "adam": [f"/halts/{halt}/release", "/unknown?channel=email"],
        "ruth": ["/exports", "/exports/new/pending?stage=accepted", "/audit?person=nobody-else",
                 "/audit"],
    }  # fmt: skip
    for who, paths in seen.items():
        page, watch = open_page(who, width, color_scheme=scheme)
        for path in paths:
            page.goto(path)
            assert axe_findings(page) == [], path
            assert overflow(page) <= 0, path
        if who == "ruth":
            page.goto("/exports/new/audit")
            page.get_by_role("button", name="Export", exact=True).click()
            assert axe_findings(page) == []
            assert overflow(page) <= 0
        watch.assert_clean()
