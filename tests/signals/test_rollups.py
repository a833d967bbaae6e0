"""What is counted a minute: each row of the trail once, whoever counts and however late it is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import psycopg

from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import Accepted, NotAccepted, Refused, Unknown
from notifier.domain.policy import default_policy
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import expiry, halts, put_back, rescue
from notifier.store import rollups
from notifier.store.database import Database
from notifier.store.reads.sweeps import uncounted
from tests.database import Clock
from tests.db.ledger.telling import receipt
from tests.db.rig import LEASE, Rig
from tests.db.waiting import together
from tests.signals.conftest import Collect, counted, total, values_of

if TYPE_CHECKING:
    from uuid import UUID


def expire(rig: Rig) -> None:
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)


def write_by_hand(connection: psycopg.Connection[object], at: datetime, notice_id: UUID) -> None:
    """A row of the trail in the caller's transaction; only what counting reads is true."""
    connection.execute(
        """INSERT INTO notifier.transition (notice_id, seq, recorded_at, occurred_at, event_id,
                  reset_request_id, actor, reason, remaining_us, template_revision,
                  policy_revision, prev_hash, hash)
           SELECT notice_id, 99, %s, %s, event_id, reset_request_id, 'worker',
                  'fallback_was_avoidable', 0, template_revision, 1, '', ''
             FROM notifier.transition WHERE notice_id = %s AND seq = 1""",
        [at, at, notice_id],
    )


def test_what_was_created_is_counted_in_its_minute_with_region_and_template(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    rig.admit(region="GB")
    rig.admit(region="GB")
    clock.advance(60)
    rig.admit()
    assert collect() == 9

    rows = rig.rows(
        """SELECT minute, region, template, n FROM rollup_count WHERE signal = 'created'
            ORDER BY minute"""
    )
    assert [(row["region"], row["template"], row["n"]) for row in rows] == [
        ("GB", "password-reset@1", 2),
        ("", "password-reset@1", 1),
    ]
    assert rows[1]["minute"] - rows[0]["minute"] == timedelta(minutes=1)


def test_each_outcome_is_counted_by_channel_provider_and_reason(rig: Rig, collect: Collect) -> None:
    rig.record(rig.start_new("ref-1"), Accepted("id-1"), "ref-1")
    rig.record(rig.start_new("ref-2"), Refused(Detail.MAILBOX_FULL), "ref-2")
    rig.record(rig.start_new("ref-3"), NotAccepted(Detail.RATE_LIMITED), "ref-3")
    rig.record(rig.start_new("ref-4"), Unknown(Reason.TIMEOUT), "ref-4")
    collect()

    assert counted(rig, "started") == {("email", "smtp", ""): 4}
    assert counted(rig, "accepted") == {("email", "smtp", "provider_accepted"): 1}
    assert counted(rig, "refused") == {("email", "smtp", "mailbox_full"): 1}
    assert counted(rig, "not_accepted") == {("email", "smtp", "rate_limited"): 1}
    assert counted(rig, "unknown") == {("email", "smtp", "timeout"): 1}
    assert counted(rig, "failed") == {}


def test_deliveries_bounces_and_odd_words_are_told_apart(database: Database, clock: Clock) -> None:
    rig = Rig(database, reports=True)
    with database.connection() as connection:
        rollups.count_new(connection)
    for number in ("1", "2", "3"):
        rig.admit()
        claim = rig.start(f"ref-{number}", provider="postmark")
        rig.record(claim, Accepted(f"id-{number}"), f"ref-{number}")
    rig.tell(receipt(ReceiptStatus.DELIVERED, "ref-1"))
    rig.tell(receipt(ReceiptStatus.FAILED, "ref-2", detail=Detail.MAILBOX_FULL))
    rig.tell(receipt(ReceiptStatus.UNMAPPED, "ref-3"))
    clock.advance(2)
    with database.connection() as connection:
        rollups.count_new(connection)

    assert total(rig, "delivered") == 1
    assert [key[2] for key in counted(rig, "failed")] == ["mailbox_full"]
    assert [key[2] for key in counted(rig, "unmapped")] == ["unmapped"]


def test_an_expired_notice_is_counted_once_by_its_cause_and_its_last_step(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    rig.admit_for_both()
    unknown = rig.admit()
    halts.engage(rig.database, scope=f"event:{rig.notice(unknown)['event_id']}", reason="x", by="x")
    clock.advance(700)
    expire(rig)
    collect()

    assert total(rig, "expired") == 2
    assert {key[2] for key in counted(rig, "expired")} == {"queue_delay", "halt"}
    assert total(rig, "expired_step") == 2


def test_p3_what_is_unknown_at_expiry_is_a_cause_of_its_own(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    rig.record(rig.start_new(), Unknown(Reason.TIMEOUT))
    clock.advance(700)
    expire(rig)
    collect()
    assert counted(rig, "expired") == {("email", "smtp", "unknown"): 1}
    assert counted(rig, "expired_step") == {("email", "smtp", "unknown"): 1}


def test_a_notice_that_expired_for_want_of_a_link_is_told_from_one_that_waited(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    rig.admit()
    put_back.hand_back_for_link(rig.desk, rig.claim_one(), LinkFault.HTTP_401)
    clock.advance(60)
    put_back.hand_back(rig.desk, rig.claim_one(), Reason.PROVIDER_PAUSED)
    assert causes_counted(rig, collect, clock) == {"queue_delay": 1}

    rig.admit()
    put_back.hand_back_for_link(rig.desk, rig.claim_one(), LinkFault.HTTP_401)
    assert causes_counted(rig, collect, clock) == {"queue_delay": 1, "no_link": 1}


def causes_counted(rig: Rig, collect: Collect, clock: Clock) -> dict[str, int]:
    """How many expired of what, once everything that is open has expired."""
    clock.advance(700)
    expire(rig)
    collect()
    return {key[2]: n for key, n in counted(rig, "expired").items()}


def test_rescues_are_counted_whether_or_not_the_call_had_begun(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    rig.start_new()
    rig.admit()
    rig.claim_one()
    clock.advance(LEASE.total_seconds() + 5)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)
    collect()
    assert {key[2] for key in counted(rig, "rescued")} == {"lease_expired", "worker_lost"}
    assert total(rig, "unknown") == 1


def test_what_is_counted_is_not_counted_again(rig: Rig, collect: Collect) -> None:
    rig.admit()
    assert collect() == 3
    assert collect() == 0
    assert total(rig, "created") == 1


def test_a_transaction_that_was_open_while_others_were_counted_is_counted_when_it_commits(
    rig: Rig, collect: Collect, database_url: str, noon: datetime
) -> None:
    notice_id = rig.admit()
    with psycopg.connect(database_url) as held:
        write_by_hand(held, noon, notice_id)
        rig.admit()
        assert collect() == 6
        assert total(rig, "created") == 2
        rig.admit()
        assert collect() == 3
        assert total(rig, "avoidable") == 0
        held.commit()
    assert collect() == 1
    assert total(rig, "avoidable") == 1
    assert collect() == 0


def test_a_transaction_that_was_open_across_a_cut_batch_is_counted_too(
    rig: Rig, collect: Collect, database_url: str, noon: datetime, clock: Clock
) -> None:
    notice_id = rig.admit()
    collect()
    with psycopg.connect(database_url) as held:
        write_by_hand(held, noon, notice_id)
        for _ in range(4):
            rig.admit()
        clock.advance(1)
        with rig.database.connection() as connection:
            batches = [rollups.count_new(connection, batch=4) for _ in range(3)]
        held.commit()
    assert batches == [6, 6, 0]
    collect()
    assert (total(rig, "created"), total(rig, "avoidable")) == (5, 1)


def test_a_transaction_that_is_rolled_back_is_never_counted(
    rig: Rig, collect: Collect, database_url: str, noon: datetime
) -> None:
    notice_id = rig.admit()
    with psycopg.connect(database_url) as held:
        write_by_hand(held, noon, notice_id)
        collect()
        held.rollback()
    assert collect() == 0
    assert total(rig, "avoidable") == 0


def test_p9_several_counters_at_once_count_each_row_once(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    for _ in range(30):
        rig.admit()
    clock.advance(1)

    def count() -> int:
        with rig.database.connection() as connection:
            return sum(rollups.count_new(connection, batch=10) or 0 for _ in range(10))

    done = together(*[count] * 4)
    collect()
    assert sum(done) <= 90
    assert total(rig, "created") == 30


def test_a_new_cluster_begins_a_new_span_instead_of_staying_silent(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    rig.run("UPDATE rollup_reader SET seen = '9000000000:9000000000:'::pg_snapshot")
    rig.admit()
    collect()
    rig.admit()
    collect()
    assert total(rig, "created") == 1
    assert rig.count("rollup_span") == 2


def test_the_span_says_up_to_when_everything_was_counted(
    rig: Rig, collect: Collect, clock: Clock, noon: datetime
) -> None:
    clock.advance(600)
    collect()
    [span] = rig.rows("SELECT began_at, counted_until FROM rollup_span")
    assert span["began_at"] == noon + timedelta(seconds=1)
    assert span["counted_until"] == clock.now()


def test_a_cut_batch_does_not_say_that_everything_was_counted(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    before = values_of(rig, "SELECT counted_until FROM rollup_span")
    for _ in range(3):
        rig.admit()
    clock.advance(5)
    with rig.database.connection() as connection:
        rollups.count_new(connection, batch=2)
        assert values_of(rig, "SELECT counted_until FROM rollup_span") == before
        while rollups.count_new(connection, batch=2):
            pass
    assert values_of(rig, "SELECT counted_until FROM rollup_span") == [clock.now()]


def test_the_backlog_is_what_was_not_counted_yet(rig: Rig, collect: Collect) -> None:
    collect()
    with rig.database.connection() as connection:
        assert uncounted(connection) == 0
        rig.admit()
        rig.admit()
        assert uncounted(connection) == 6
        assert uncounted(connection, limit=4) == 4


def test_the_queue_is_sampled_for_each_filter_and_an_empty_queue_is_nought(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    assert rig.one("SELECT waiting, max_s FROM rollup_queue") == {"waiting": 0, "max_s": 0}
    clock.advance(60)
    rig.admit(region="GB")
    clock.advance(20)
    rig.admit(region="DE")
    clock.advance(9)
    collect()
    row = "SELECT waiting, p50_s, p95_s, max_s FROM rollup_queue WHERE waiting > 0"
    whole = rig.one(f"{row} AND channel = '*' AND template = '*' AND region = '*'")
    assert (whole["waiting"], whole["p50_s"], whole["max_s"]) == (2, 20.0, 30.0)
    assert whole["p95_s"] == 29.0
    british = rig.one(f"{row} AND channel = 'email' AND template = '*' AND region = 'GB'")
    assert (british["waiting"], british["max_s"]) == (1, 30.0)


def test_a_minute_keeps_its_worst_sample(rig: Rig, collect: Collect, clock: Clock) -> None:
    clock.advance(60)
    rig.admit()
    clock.advance(30)
    collect()
    rig.claim_one()
    collect()
    waits = values_of(rig, "SELECT max(max_s) FROM rollup_queue GROUP BY minute ORDER BY minute")
    assert waits == [0.0, 31.0]


def test_totals_and_hours_hold_what_the_minutes_hold(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    for reference in ("ref-1", "ref-2", "ref-3"):
        rig.record(rig.start_new(reference), Unknown(Reason.TIMEOUT), reference)
        clock.advance(2_000)
        collect()
    with rig.database.connection() as connection:
        rollups.add_refusals(connection, {"postmark": 2})
    by_minute = """
        SELECT date_trunc('hour', minute, 'UTC') AS hour, signal, channel, provider, reason, region,
               template, sum(n)::bigint AS n
          FROM rollup_count GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7"""
    by_hour = "SELECT * FROM rollup_hour ORDER BY 1, 2, 3, 4, 5, 6, 7"
    assert rig.rows(by_hour) == rig.rows(by_minute)
    by_part = """
        SELECT minute, signal, channel, template, sum(n)::bigint AS n
          FROM rollup_count GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""
    assert rig.rows("SELECT * FROM rollup_total ORDER BY 1, 2, 3, 4") == rig.rows(by_part)
    assert len({row["hour"] for row in rig.rows(by_hour)}) == 2


def test_what_is_open_is_sampled(rig: Rig, collect: Collect, clock: Clock) -> None:
    rig.record(rig.start_new(), Unknown(Reason.TIMEOUT))
    rig.admit()
    clock.advance(60)
    collect()
    assert values_of(rig, "SELECT pending FROM rollup_level ORDER BY minute") == [0, 2]
    assert values_of(rig, "SELECT unknown FROM rollup_level ORDER BY minute") == [0, 1]


def test_counts_are_forgotten_after_their_time_an_hour_at_once(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    days = default_policy().retention["rollup_days"]
    rig.admit()
    collect()
    clock.advance(3 * 3600)
    rig.admit()
    collect()
    clock.advance(days * 86_400)
    collect()
    assert total(rig, "created") == 1
    collect()
    assert total(rig, "created") == 0
    assert rig.count("rollup_level") == 1
    assert rig.count("rollup_hour") == rig.count("rollup_total") == 0


def test_refused_callbacks_are_added_up(rig: Rig) -> None:
    with rig.database.connection() as connection:
        rollups.add_refusals(connection, {"postmark": 2, "twilio": 1})
        rollups.add_refusals(connection, {"postmark": 3})
    assert counted(rig, "callback_refused") == {
        ("", "postmark", ""): 5,
        ("", "twilio", ""): 1,
    }


HISTORY = """
    ALTER TABLE transition DISABLE TRIGGER USER;
    INSERT INTO transition (notice_id, seq, recorded_at, occurred_at, event_id, reset_request_id,
            channel, actor, from_state, to_state, reason, remaining_us, template_revision,
            policy_revision, prev_hash, hash)
    SELECT gen_random_uuid(), 1, at, at, n, n, 'email', 'worker', 'queued', 'claimed', 'claimed',
           0, '1', 1, '', ''
      FROM (SELECT n, db_now() - n * interval '1 s' AS at FROM generate_series(1, 50000) AS n) AS p;
    ALTER TABLE transition ENABLE TRIGGER USER;
"""
TOUCHED = """
    SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::int AS blocks,
           (SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'transition')::int AS scans
      FROM pg_statio_user_tables WHERE relname = 'transition'
"""


def test_the_cost_follows_new_rows_not_the_trail(database_url: str, clock: Clock) -> None:
    one = Database(database_url, size=1, search_path="test_clock,notifier")
    rig = Rig(one)
    with one.connection() as connection:
        connection.execute(HISTORY)
        connection.execute("VACUUM ANALYZE transition")
        rollups.count_new(connection)
    costs = []
    for _ in range(2):
        for _ in range(5):
            rig.admit()
        clock.advance(2)
        rig.run("SELECT pg_stat_force_next_flush()")
        before = rig.one(TOUCHED)
        with one.connection() as connection:
            assert rollups.count_new(connection) == 15
        rig.run("SELECT pg_stat_force_next_flush()")
        after = rig.one(TOUCHED)
        assert after["scans"] == before["scans"]
        costs.append(after["blocks"] - before["blocks"])
    one.close()
    assert max(costs) <= 60, costs
