"""A policy number that breaks something is refused; one that was kept before bars no way back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from notifier.domain.policy import DEFAULTS, default_policy
from notifier.flow.policies import PolicyShelf
from tests.people_pages import Browser
from tests.web.people.test_policy import check, fields, keep, stored

if TYPE_CHECKING:
    from notifier.store.database import Database

TINY = 1e-9


@pytest.fixture(autouse=True)
def shelf(database: Database) -> PolicyShelf:
    made = PolicyShelf(database)
    made.begin(default_policy(), "start")
    return made


def kept_long_ago(database: Database, **values: Any) -> None:
    """A revision from before there were limits, past every check."""
    document = json.dumps({**DEFAULTS, **values})
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO policy_revision (revision, document, digest, author, reason, created_at)
               SELECT max(revision) + 1, %s::jsonb, sha256('x'), 'otto', 'faster', db_now()
                 FROM policy_revision""",
            [document],
        )


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("sweep_every_s", "1e-9", "must be at least 0.1"),
        ("sweep_every_s", "3601", "must be at most 3600"),
        ("call_timeout_s__email", "0.0001", "must be at least 0.1"),
        ("reconcile_after_s", "0.00001, 5", "must be at least 0.1"),
        ("retention__contact_days", "0.5", "must be at least 1"),
        ("retention__rollup_days", "99999999", "which is a hundred years"),
        ("alert__life_s", "1e-9", "must be at least 1"),
    ],
)
def test_a_draft_with_a_number_that_breaks_something_is_refused_and_never_kept(
    on_call: Browser, database: Database, field: str, text: str, said: str
) -> None:
    page = on_call.get("/policy").text
    seen = check(on_call, **{field: text})
    assert seen.status_code == 422
    assert said in seen.text
    typed = fields(page) | {field.replace("__", "/"): text, "reason": "slow carrier"}
    assert on_call.post("/policy/revisions", **typed).status_code == 422
    assert len(stored(database)) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"sweep_every_s": TINY},
        {"poll_every_s": TINY, "reconcile_after_s": [TINY], "retry_backoff_s": [TINY]},
        {"call_timeout_s": {"email": 1e7, "sms": TINY}},
        {"retention": {**DEFAULTS["retention"], "rollup_days": 1e9, "contact_days": 0}},
        {"alert": {**DEFAULTS["alert"], "life_s": TINY, "lapsed_lease_share": 1e-300}},
    ],
)
def test_a_revision_from_before_the_limits_is_shown_compared_and_replaced(
    on_call: Browser, database: Database, values: dict[str, Any]
) -> None:
    kept_long_ago(database, **values)
    for path in (
        "/policy",
        "/policy/revisions/2",
        "/policy/revisions/2/policy.toml",
        "/",
        "/incident",
    ):
        assert on_call.client.get(path, follow_redirects=True).status_code == 200
    seen = check(on_call, lease_s="40")
    assert seen.status_code == 200
    assert "1 value changes" in seen.text
    kept = keep(on_call, seen)
    assert kept.status_code == 303
    assert on_call.get(str(kept.location)).status_code == 200


def test_the_process_works_by_the_limit_where_a_kept_number_is_past_it(database: Database) -> None:
    kept_long_ago(database, sweep_every_s=TINY, lease_s=1e7)
    revision, policy = PolicyShelf(database).current()
    assert (revision, policy.sweep_every_s, policy.lease_s) == (2, 0.1, 3600.0)
