"""What retention costs follows what is removed, whatever was removed before and is kept after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from notifier.store.embedded import EmbeddedServer
from notifier.store.ledger import retention
from tests import database as databases

DAYS = 90
OVER = 40
"""Notices whose details are over their time, two receipts each."""
OPEN = 20
"""Notices as old that never ended."""

# A hundred and fifty notices a day for 400 days; details of the last 90 and of what is over.
HISTORY = f"""
    CREATE TEMPORARY TABLE past AS
        SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
                || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid AS id,
               n, at
          FROM (SELECT n, db_now() + interval '5 min' - n * interval '576 s' AS at
                  FROM generate_series(1, 60000) AS n) AS each;
    INSERT INTO notice (notice_id, event_id, reset_request_id, account_id, template_id,
            template_revision, locale_used, policy_revision, mode, state, created_at, expires_at,
            seq, head, changed_at)
        SELECT id, id, id, n % 100, 'password-reset', '1', 'en', 1, 'email_then_sms',
               CASE WHEN n > 13500 AND n <= 13500 + {OPEN} THEN 'email_pending'
                    ELSE 'complete' END,
               at, at, 1, '', at
          FROM past;
    INSERT INTO reset_event (notice_id, event_id, signing_key_id, locale_used, mode, received_at)
        SELECT id, id, 'k', 'en', 'email_only', at FROM past WHERE n <= 13500 + {OPEN + OVER};
    INSERT INTO contact SELECT id, 'email', 'm', 'f', 'event', at
          FROM past WHERE n <= 13500 + {OPEN + OVER};
    INSERT INTO receipt (receipt_id, provider, account, identity, notice_id, channel, attempt,
            source, status, final, received_at, applied_at)
        SELECT gen_random_uuid(), 'postmark', '', convert_to(id::text || r, 'UTF8'), id, 'email', 1,
               'callback', 'delivered', true, at, at
          FROM past CROSS JOIN generate_series(1, 2) AS r WHERE n <= 13500 + {OPEN + OVER};
    INSERT INTO receipt (receipt_id, provider, account, identity, source, status, final,
            received_at)
        SELECT gen_random_uuid(), 'postmark', '', convert_to(id::text, 'UTF8'), 'callback',
               'delivered', true, db_now() - interval '4 days' * (n % 2)
          FROM past WHERE n <= 5000;
"""  # noqa: S608 - our own numbers
STATEMENTS = {
    "receipts": (retention.RECEIPTS, "receipt_by_notice", 2 * OVER),
    "events": (retention.EVENTS, "reset_event_pkey", OVER),
    "contacts": (retention.CONTACTS, "contact_pkey", OVER + OPEN),
    "strangers": (retention.STRANGERS, "receipt_parked", retention.BATCH),
}
PAGES_A_ROW = 40
"""Pages of index and table that one row's removal may touch, with its notice and its index keys."""


@pytest.fixture(scope="module")
def old_url(postgres: EmbeddedServer) -> Iterator[str]:
    with databases.fresh_database(postgres) as url:
        options = "-c search_path=test_clock,notifier"
        with psycopg.connect(url, autocommit=True, options=options) as connection:
            connection.execute(HISTORY)
            connection.execute("VACUUM ANALYZE")
        yield url


def explained(url: str, plan_cache: str, statement: str) -> dict[str, Any]:
    """The plan as it ran, undone afterwards."""
    options = f"-c search_path=test_clock,notifier -c plan_cache_mode={plan_cache}"
    with psycopg.connect(url, options=options) as connection:
        row = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}",
            {"days": float(DAYS), "batch": retention.BATCH},
            prepare=True,
        ).fetchone()
        connection.rollback()
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from nodes(each)


@pytest.mark.parametrize("plan_cache", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_b140_erasing_reads_what_is_over_and_no_history(
    old_url: str, name: str, plan_cache: str
) -> None:
    statement, index, removed = STATEMENTS[name]
    plan = explained(old_url, plan_cache, statement)
    found = list(nodes(plan))

    assert index in {each.get("Index Name") for each in found}, json.dumps(plan, indent=1)
    assert not [each for each in found if each["Node Type"] == "Seq Scan"], found
    deletes = [each for each in found if each.get("Operation") == "Delete"]
    inputs = [each for delete in deletes for each in delete["Plans"]]
    victims = [each for each in inputs if each["Parent Relationship"] == "Outer"]
    assert [each["Actual Rows"] for each in victims] == [removed], json.dumps(plan, indent=1)
    looked_at = removed + 2 * OPEN
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= PAGES_A_ROW * (looked_at + 5)
