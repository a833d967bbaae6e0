"""Single sign-on in a real browser, at a real provider, with and without scripts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from werkzeug.serving import make_server

from notifier.accounts.oidc_issuer import Issuer
from tests.browser.watching import LISTEN, axe_findings, overflow
from tests.issuers import client_at, real_provider
from tests.people_pages import build_app
from tests.ports import port_to_bind

if TYPE_CHECKING:
    from notifier.store.database import Database

PEOPLE = {
    "sub-olga": {"preferred_username": "olga", "groups": ["auditor"]},
    "sub-nick": {"preferred_username": "nick", "groups": ["staff"]},
}


@pytest.fixture
def site(database: Database) -> Iterator[str]:
    port = port_to_bind()
    base = f"http://127.0.0.1:{port}"
    with real_provider(PEOPLE) as url:
        app = build_app(database, issuer=Issuer(client_at(url, base)), local_accounts=False)
        server = make_server("127.0.0.1", port, app, threaded=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield base
        server.shutdown()
        thread.join()
        server.server_close()


def stay_here(route: Route) -> None:
    """The provider's page wants a sheet from elsewhere; it does without."""
    if urlsplit(route.request.url).hostname == "127.0.0.1":
        route.continue_()
    else:
        route.abort()


@pytest.mark.parametrize("scripts", [True, False])
def test_somebody_signs_in_there_and_out_again_on_both_sides(
    chromium: Browser, site: str, scripts: bool
) -> None:
    context = chromium.new_context(base_url=site, java_script_enabled=scripts)
    context.route("**/*", stay_here)
    page = context.new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.add_init_script(LISTEN)
    page.set_default_timeout(20_000)

    page.goto("/audit")
    page.get_by_role("link", name="Sign in with single sign-on").click()
    page.get_by_role("button", name="sub-olga").click()
    page.wait_for_url(f"{site}/audit")
    expect(page.locator("header .role")).to_have_text("auditor")

    page.locator("details.me summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out here.")).to_be_visible()
    page.get_by_role("link", name="Sign out of single sign-on too").click()
    page.get_by_role("button", name="End session").click()
    page.wait_for_url(f"{site}/login")
    page.goto("/audit")
    page.wait_for_url("**/login?next=**")
    assert not [each for each in heard if "Content Security Policy" in each]
    context.close()


def arrive(page: Page, who: str) -> None:
    page.goto("/login")
    page.get_by_role("link", name="Sign in with single sign-on").click()
    page.get_by_role("button", name=who).click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_door_and_its_refusals_are_accessible_and_fit_a_phone(
    chromium: Browser, site: str, scheme: str
) -> None:
    context = chromium.new_context(
        base_url=site,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": 375, "height": 667},
    )
    context.route("**/*", stay_here)
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto("/login")
    assert axe_findings(page) == []
    assert overflow(page) <= 0
    arrive(page, "sub-nick")
    expect(page.get_by_role("heading", name="You have no role here")).to_be_visible()
    assert axe_findings(page) == []
    page.goto("/login/sso/return?state=forged&code=x")
    expect(page.get_by_role("alert")).to_contain_text("not begun in this browser")
    assert axe_findings(page) == []
    assert overflow(page) <= 0
    context.close()
