"""What a sweep costs follows the open work: 100,000 closed deliveries must not be noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from notifier.domain.call_limits import RESCUE_GRACE
from notifier.flow import expiry, halts, rescue
from notifier.flow.desk import Desk
from notifier.store.database import Database, PooledConnection
from notifier.store.embedded import EmbeddedServer
from notifier.store.ledger.claim import CLAIM
from notifier.store.reads import due
from tests import database as databases
from tests.db.rig import BOTH, LEASE, Rig

CLOSED_NOTICES = 50_000
HISTORY = f"""
    ALTER TABLE delivery DISABLE TRIGGER USER;
    CREATE TEMPORARY TABLE past AS
        SELECT gen_random_uuid() AS id, n, db_now() - n * interval '1 s' AS at
          FROM generate_series(1, {CLOSED_NOTICES}) AS n;
    INSERT INTO notice (notice_id, event_id, reset_request_id, account_id, template_id,
            template_revision, locale_used, policy_revision, mode, state, created_at, expires_at,
            seq, head, changed_at)
        SELECT id, id, id, n % 100, 'password-reset', '1', 'en', 1, 'email_then_sms',
               (ARRAY['complete', 'expired', 'failed', 'canceled'])[1 + n % 4], at, at, 1, '', at
          FROM past;
    INSERT INTO delivery (notice_id, channel, state, reason, final_acceptance, stop_at,
            expires_at, due_at, changed_at)
        SELECT id, channel,
               (ARRAY['accepted', 'expired', 'failed', 'canceled', 'suppressed', 'delivered'])
                   [1 + n % 6], 'x', true, at, at, at, at
          FROM past CROSS JOIN (VALUES ('email'), ('sms')) AS c (channel);
    ALTER TABLE delivery ENABLE TRIGGER USER;
"""  # noqa: S608 - our own number
TOUCHED = """
    SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit) AS blocks,
           (SELECT sum(seq_scan) FROM pg_stat_user_tables
             WHERE relname IN ('notice', 'delivery')) AS scans
      FROM pg_statio_user_tables WHERE relname IN ('notice', 'delivery')
"""
FLUSH = "SELECT pg_stat_force_next_flush()"
BLOCKS_A_NOTICE = 150
"""Index and heap pages that one notice's work may touch, whatever lies beside it."""


@dataclass(frozen=True)
class Cost:
    blocks: int
    scans: int


@pytest.fixture(scope="module")
def old_url(postgres: EmbeddedServer) -> Iterator[str]:
    """A database with a long past, analysed once as it would be."""
    with databases.fresh_database(postgres) as url:
        options = "-c search_path=test_clock,notifier"
        with psycopg.connect(url, autocommit=True, options=options) as connection:
            connection.execute(HISTORY)
            connection.execute("VACUUM ANALYZE")
        yield url


@pytest.fixture(params=["auto", "force_generic_plan"])
def old(old_url: str, request: pytest.FixtureRequest) -> Iterator[Rig]:
    options = f"-c plan_cache_mode={request.param}"
    # One connection, so that what it counted can be asked for.
    database = Database(old_url, size=1, search_path="test_clock,notifier", extra_options=options)
    yield Rig(database, channels=BOTH)
    with database.connection() as connection:
        connection.execute("UPDATE test_clock.setting SET fixed = NULL, shift = '0'")
    database.close()


def touched(rig: Rig) -> Cost:
    row = rig.one(TOUCHED)
    return Cost(int(row["blocks"]), int(row["scans"]))


def cost(rig: Rig, job: Callable[[], object]) -> Cost:
    """Pages of notices and deliveries that `job` touched, and how often it read a whole table."""
    rig.run(FLUSH)
    before = touched(rig)
    job()
    rig.run(FLUSH)
    after = touched(rig)
    return Cost(after.blocks - before.blocks, after.scans - before.scans)


Sweep = Callable[[Desk, PooledConnection], int]


def swept(rig: Rig, sweep: Sweep) -> Callable[[], int]:
    def run() -> int:
        with rig.database.connection() as connection:
            return sweep(rig.desk, connection)

    return run


def advance(rig: Rig, seconds: float) -> None:
    rig.run("UPDATE test_clock.setting SET shift = shift + make_interval(secs => %s)", seconds)


def test_b093_claim_rescue_fallback_and_expiry_cost_what_is_open(old: Rig) -> None:
    for _ in range(5):
        old.admit_for_both()

    claiming = cost(old, lambda: old.claim(5))
    idle = cost(old, lambda: old.claim(5))
    advance(old, LEASE.total_seconds() + 5)
    rescuing = cost(old, swept(old, rescue.rescue))
    advance(old, 300)
    deciding = cost(old, swept(old, expiry.decide_fallbacks))
    advance(old, 300)
    expiring = cost(old, swept(old, expiry.expire))
    halting = cost(old, lambda: halts.engage(old.database, scope="all", reason="x", by="x"))
    halts.release(old.database, scope="all", reason="x", by="x")

    costs = [claiming, rescuing, deciding, expiring]
    assert [each.scans for each in (*costs, idle, halting)] == [0] * 6
    assert all(5 <= each.blocks <= 5 * BLOCKS_A_NOTICE for each in costs), costs
    assert idle.blocks <= BLOCKS_A_NOTICE
    assert halting.blocks <= BLOCKS_A_NOTICE


CLAIMING = {
    "channel": "email",
    "provider": "smtp",
    "owner": "w",
    "slots": 5,
    "lease": LEASE,
    "turn_until": None,
}
BATCH = {"batch": due.BATCH, "grace": RESCUE_GRACE.total_seconds()}
# Where nothing waits, two partial indexes over open work may cost the same.
STATEMENTS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "claim": (CLAIM, CLAIMING, {"delivery_queued", "delivery_unsent_stop"}),
    "expiry": (due.OVER, BATCH, {"delivery_unsent_stop"}),
    "expiry of the unproven": (due.OVER, BATCH, {"delivery_unproven_expiry"}),
    "rescue": (due.LAPSED, BATCH, {"delivery_leased"}),
    "fallback": (due.FALLBACK_DUE, BATCH, {"notice_fallback_due", "delivery_unsent_stop"}),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_each_sweep_walks_its_own_partial_index(old_url: str, name: str) -> None:
    statement, values, indexes = STATEMENTS[name]
    options = "-c search_path=test_clock,notifier"
    with psycopg.connect(old_url, options=options) as connection:
        rows = connection.execute("EXPLAIN " + statement, values).fetchall()
        connection.rollback()
    plan = "\n".join(row[0] for row in rows)

    assert any(index in plan for index in indexes)
    assert "Seq Scan on delivery" not in plan
    assert "Seq Scan on notice" not in plan
