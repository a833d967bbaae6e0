"""A search by address in a real browser leaves it nowhere that outlives the moment (B109)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, Request

from notifier.accounts import people
from notifier.accounts.permissions import Role
from notifier.store.database import Database
from notifier.store.embedded import EmbeddedServer
from tests.leaks.search import Haystack, find, told
from tests.leaks.stage import Stage, dump, stage

REMEMBERED = """() => JSON.stringify({
    urls: navigation.entries().map(entry => entry.url),
    states: navigation.entries().map(entry => entry.getState()),
    history: history.state, local: {...localStorage}, session: {...sessionStorage},
    cookies: document.cookie, title: document.title, name: window.name,
    loaded: performance.getEntries().map(entry => entry.name),
})"""


@contextmanager
def signed_in(played: Stage, page: Page) -> Iterator[list[str]]:
    """A support agent's browser; gives every address asked for, with all that went along."""
    database = Database(played.database_url, size=1)
    with database.connection() as connection:
        people.add(connection, "agent", Role.SUPPORT, played.canaries.account_password)
    database.close()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(told_of(request)))
    page.goto(f"{played.base_url}/login")
    page.get_by_label("Name").fill("agent")
    page.get_by_label("Password").fill(played.canaries.account_password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{played.base_url}/")
    yield sent
    page.close()


def told_of(request: Request) -> str:
    return f"{request.method} {request.url} {request.headers}"


def test_p7_b109_a_search_by_address_is_in_no_url_no_history_and_no_log(
    tmp_path: Path, postgres: EmbeddedServer, database_url: str, page: Page
) -> None:
    with stage(tmp_path, database_url) as played:
        app = played.start()
        event = played.event("searched")
        assert played.post(event).status == 202
        with signed_in(played, page) as sent:
            kept = [page.evaluate(REMEMBERED)]
            for typed in (played.canaries.address(), played.canaries.spellings()[2]):
                box = page.locator('input[type="search"][name="q"]').first
                box.fill(typed)
                box.press("Enter")
                page.wait_for_url("**/search?s=*")
                page.wait_for_load_state()
                assert "evt-searched" in page.content() or "•••" in page.content()
                kept += [page.evaluate(REMEMBERED), page.content()]
                page.reload()
                kept += [page.evaluate(REMEMBERED), page.content()]
            page.go_back()
            page.go_forward()
            kept += [page.evaluate(REMEMBERED), page.content()]
        app.close()
        assert any("/search?s=" in each for each in sent)
        stacks = [Haystack("the browser's memory", "\n".join(kept).encode())]
        stacks += [Haystack("requests", "\n".join(sent).encode()), *played.leftovers()]
        stacks.append(dump(postgres.bin_dir, database_url))
        found = find(played.canaries.needles(), stacks)
        assert not found, told(found)
