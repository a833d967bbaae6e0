"""The policy page of a database on which no process has begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.people_pages import Browser

if TYPE_CHECKING:
    from notifier.store.database import Database


def test_where_no_policy_is_stored_the_page_says_so_and_changes_nothing(
    on_call: Browser, database: Database
) -> None:
    answer = on_call.get("/policy")
    assert answer.status_code == 200
    assert "No policy is stored yet" in answer.text
    assert on_call.get("/policy?format=json").get_json()["rows"] == []
    assert on_call.get("/policy/revisions/1").status_code == 404
    for path in ("/policy", "/policy/revisions"):
        refused = on_call.post(path, revision="1", reason="why")
        assert (refused.status_code, "No policy is stored yet" in refused.text) == (409, True)
    with database.connection() as connection:
        assert connection.execute("SELECT FROM policy_revision").fetchall() == []
