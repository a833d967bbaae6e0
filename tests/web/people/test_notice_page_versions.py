"""A refresh that would change nothing is empty, and says from when the page is now."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote
from uuid import UUID

import pytest

from notifier.accounts.permissions import Role
from tests.people_pages import FRAGMENT, Browser

if TYPE_CHECKING:
    from werkzeug.test import TestResponse

    from notifier.store.database import Database
    from tests.database import Clock
    from tests.web.people.conftest import SignIn


def poll(browser: Browser, path: str, seen: str = "") -> TestResponse:
    return browser.client.get(path, headers={**FRAGMENT, "X-If-Version": seen})


@pytest.mark.parametrize("name", ["failed", "email_pending"])
def test_the_same_again_is_told_by_its_version_alone(
    support: Browser, notices: dict[str, UUID], clock: Clock, name: str
) -> None:
    clock.freeze()
    path = f"/n/{notices[name]}"
    first = poll(support, path)
    version = first.headers["X-Version"]
    again = poll(support, path, version)
    assert (again.status_code, again.data) == (204, b"")
    assert again.headers["X-Version"] == version
    assert f'data-as-of="{unquote(again.headers["X-As-Of"])}"' in first.text


def test_a_countdown_that_goes_on_is_a_change(
    support: Browser, notices: dict[str, UUID], clock: Clock
) -> None:
    clock.freeze()
    path = f"/n/{notices['email_pending']}"
    version = poll(support, path).headers["X-Version"]
    clock.advance(2)
    answer = poll(support, path, version)
    assert answer.status_code == 200
    assert answer.headers["X-Version"] != version


def test_what_does_not_change_by_itself_keeps_its_version_as_time_goes_on(
    support: Browser, notices: dict[str, UUID], clock: Clock
) -> None:
    clock.freeze()
    before = poll(support, "/halts")
    clock.advance(3)
    after = poll(support, "/halts", before.headers["X-Version"])
    assert after.status_code == 204
    assert f'data-as-of="{unquote(after.headers["X-As-Of"])}"' not in before.text


def test_a_new_fact_is_a_new_version(
    support: Browser, database: Database, notices: dict[str, UUID], clock: Clock
) -> None:
    clock.freeze()
    path = f"/n/{notices['failed']}"
    version = poll(support, path).headers["X-Version"]
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO halt (halt_id, scope, reason, engaged_by, engaged_at)
               VALUES (gen_random_uuid(), 'all', 'drill', 'otto', db_now())"""
        )
    assert poll(support, "/halts", version).status_code == 200
    support.post(f"{path}/tickets", ticket_id="HD-9")
    assert poll(support, path, version).status_code == 200


def test_whole_pages_faults_and_refusals_are_never_spared(
    sign_in: SignIn, notices: dict[str, UUID]
) -> None:
    browser = sign_in(Role.SUPPORT)
    path = f"/n/{notices['failed']}"
    version = poll(browser, path).headers["X-Version"]
    whole = browser.get(path, **{"X-If-Version": version})
    assert whole.status_code == 200
    assert "X-Version" not in whole.headers
    assert poll(browser, "/audit", version).status_code == 403
    assert poll(browser, "/pending?stage=odd", version).status_code == 422
