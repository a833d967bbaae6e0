"""A real browser on a real socket, watched for everything that it should not do."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright
from werkzeug.serving import make_server

from notifier.accounts import people
from notifier.accounts.permissions import Role
from tests.browser.watching import Watch
from tests.people_pages import PASSWORD, build_app

if TYPE_CHECKING:
    from flask import Flask

    from notifier.store.database import Database

CANDIDATES = (
    os.environ.get("CHROMIUM", ""),
    "/usr/bin/chromium-headless-shell",
    "/usr/bin/chromium",
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

OpenPage = Callable[..., tuple[Page, Watch]]


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """One browser a worker, from the plugin's own driver: a process cannot hold two of them."""
    found = next((each for each in CANDIDATES if each and Path(each).exists()), None)
    assert found, "no Chromium: install Debian's package chromium-headless-shell or set CHROMIUM"
    browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def app(database: Database) -> Flask:
    with database.connection() as connection:
        people.add(connection, "ada", Role.SUPPORT, PASSWORD)
        people.add(connection, "otto", Role.ON_CALL, PASSWORD)
    return build_app(database)


@pytest.fixture
def site(app: Flask) -> Iterator[str]:
    """The address of the running pages."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def open_page(chromium: Browser, site: str) -> Iterator[OpenPage]:
    """Opens a watched page; `who` is signed in first, None leaves the door closed."""
    with ExitStack() as opened:

        def open_(who: str | None = "ada", width: int = 1280, **options: Any) -> tuple[Page, Watch]:
            context: BrowserContext = chromium.new_context(
                base_url=site,
                timezone_id="UTC",
                locale="en-GB",
                viewport={"width": width, "height": 667 if width < 500 else 800},
                **options,
            )
            opened.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(15_000)
            watch = Watch(page, site)
            if who is not None:
                sign_in(page, who)
            return page, watch

        yield open_


def sign_in(page: Page, who: str) -> None:
    """Through the form, as people do."""
    page.goto("/login")
    page.get_by_label("Name").fill(who)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
