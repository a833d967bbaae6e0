"""P8: checkpoints cover every change once, whoever makes them, and cannot be forged or removed."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from notifier.flow.checkpoints import EVERY, Seal, checkpoint, public_keys, signed
from notifier.logs import configure_logs
from notifier.store.ledger import admission, checkpoints
from notifier.store.reads.trail_export import Scope
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import TRANSPORT, Rig
from tests.trail.tampering import (
    ALWAYS,
    KEYS,
    SEED,
    Intruder,
    delivered,
    export_on,
    in_database,
    in_export,
    seal,
    seen,
)

OTHER_SEED = bytes(32)
ROW = "SELECT * FROM checkpoint WHERE number = %s"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What is logged meanwhile."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, sys.excepthook, threading.excepthook)
    written = io.StringIO()
    configure_logs(written, as_json=True)
    yield written
    configure_logs()
    root.handlers[:], root.level, sys.excepthook, threading.excepthook = before
    logging.captureWarnings(capture=False)
    logging.raiseExceptions = True


def test_p8_a_checkpoint_covers_the_heads_that_changed_since_the_last_one(rig: Rig) -> None:
    first, second = delivered(rig, 1), delivered(rig, 2)
    assert seal(rig) == 2

    rig.settle(first)
    assert seal(rig) == 0
    third = delivered(rig, 3)
    rig.admit()
    claim = rig.claim_one()

    assert seal(rig) == 2
    covered = rig.rows("SELECT number, notice_id, seq FROM checkpoint_head ORDER BY number, seq")
    assert [(row["number"], row["seq"]) for row in covered] == [(1, 6), (1, 6), (3, 4), (3, 6)]
    assert {row["notice_id"] for row in covered[:2]} == {first, second}
    assert [row["notice_id"] for row in covered[2:]] == [claim.notice_id, third]
    verifier, faults = in_database(rig)
    assert (verifier.checkpoints, verifier.uncovered_rows, faults) == (3, 0, [])


def test_p8_a_transaction_that_commits_late_with_an_early_time_is_not_passed_by(rig: Rig) -> None:
    late = rig.admission._values(rig.event(), TRANSPORT, b"digest")
    with rig.database.connection() as slow, slow.transaction():
        admission.admit(slow, late, [b"digest"])
        delivered(rig, 1)
        assert seal(rig) == 1

    assert in_database(rig)[0].uncovered_rows == 3
    assert seal(rig) == 1
    assert in_database(rig)[0].uncovered_rows == 0
    assert seen(rig) == set()


def test_one_is_made_an_hour_whether_or_not_anything_changed(rig: Rig, clock: Clock) -> None:
    rig.admit()
    made = []
    for minutes in (0, 1, 58, 1, 30, 30):
        clock.advance(60 * minutes)
        with rig.database.connection() as connection:
            checkpoint(Seal.of(SEED), connection)
        made.append(rig.count("checkpoint"))

    assert made == [1, 1, 1, 2, 2, 3]
    assert timedelta(minutes=60) == EVERY


def test_p9_of_two_that_make_the_same_one_the_first_comes_through(make_rig: MakeRig) -> None:
    rig, other = make_rig(), make_rig()
    delivered(rig, 1)
    key = Seal.of(SEED)
    with rig.database.connection() as here, other.database.connection() as there:
        both = []
        for connection in (here, there):
            due = checkpoints.next_due(connection, ALWAYS)
            assert due is not None
            heads = checkpoints.changed(connection, due, 10)
            both.append((connection, signed(key, due, heads), heads, due))

        through = [checkpoints.write(*each, complete=True) for each in both]

    assert through == [True, False]
    assert (rig.count("checkpoint"), rig.count("checkpoint_head")) == (1, 1)
    assert seen(rig) == set()


def test_p9_many_at_once_leave_one_chain_and_each_head_in_it_once(make_rig: MakeRig) -> None:
    rigs = [make_rig(size=2) for _ in range(4)]
    for number in range(6):
        delivered(rigs[0], number)

    threads = [threading.Thread(target=lambda each=each: [seal(each, limit=2) for _ in range(4)])
               for each in rigs]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert rigs[0].count("checkpoint_head") == 6
    assert seen(rigs[0]) == set()


def test_what_is_too_much_for_one_goes_into_the_next_at_once(rig: Rig) -> None:
    for number in range(5):
        delivered(rig, number)
    with rig.database.connection() as connection:
        covered = [checkpoint(Seal.of(SEED), connection, limit=2) for _ in range(4)]

    assert covered == [2, 2, 1, 0]
    assert seen(rig) == set()


@pytest.mark.parametrize("limit", [2, 20_000])
def test_p8_in_a_cluster_that_counts_its_transactions_anew_nothing_is_passed_by(
    rig: Rig, intruder: Intruder, limit: int
) -> None:
    delivered(rig, 1)
    seal(rig)
    for number in range(2, 5):
        delivered(rig, number)

    intruder.run(
        "UPDATE checkpoint SET cut = '900000000000'",
        "UPDATE transition SET written_in = (written_in::text::bigint + 800000000000)::text::xid8",
    )
    while seal(rig, limit):
        pass
    rig.admit()
    while seal(rig, limit):
        pass

    assert in_database(rig)[0].uncovered_rows == 0
    assert seen(rig) == set()


FILL = """
    INSERT INTO transition (notice_id, seq, recorded_at, occurred_at, event_id, reset_request_id,
                            actor, reason, remaining_us, template_revision, policy_revision,
                            prev_hash, hash)
    SELECT id, 1, db_now(), db_now(), id, id, 'service', 'event_admitted', 1, 'x@1', 1, '', ''
      FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 20000)) past
"""
TOUCHED = """
    SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit AS blocks
      FROM pg_statio_user_tables WHERE relname = 'transition'
"""


def test_the_cost_follows_what_changed_and_not_the_past(make_rig: MakeRig) -> None:
    rig = make_rig(size=1)
    rig.run(FILL)
    assert [seal(rig), seal(rig)] == [20_000, 0]
    rig.run("VACUUM ANALYZE transition")
    rig.admit()
    rig.run("SELECT pg_stat_force_next_flush()")
    before = rig.one(TOUCHED)["blocks"]

    assert seal(rig) == 1

    rig.run("SELECT pg_stat_force_next_flush()")
    assert rig.one(TOUCHED)["blocks"] - before < 50


def test_p8_the_log_line_is_enough_to_miss_a_checkpoint_that_was_removed(
    rig: Rig, intruder: Intruder, logged: io.StringIO
) -> None:
    delivered(rig, 1)
    seal(rig)
    delivered(rig, 2)
    seal(rig)
    entries = [json.loads(line) for line in logged.getvalue().splitlines()]
    last = next(each for each in entries if each.get("checkpoint") == 2)
    told = {last["checkpoint"]: last["digest"]}
    row = rig.one(ROW, 2)
    assert (last["event"], last["head_count"], last["key_id"]) == ("trail_checkpoint", 1, *KEYS)
    assert bytes.fromhex(last["signature"]) == row["signature"]
    assert seen(rig, told) == set()

    intruder.run("DELETE FROM checkpoint WHERE number = 2")
    assert {kind for kind, _ in seen(rig)} == {"checkpoint chain"}
    intruder.run("DELETE FROM checkpoint_head WHERE number = 2")
    assert seen(rig) == set()

    assert {kind for kind, _ in seen(rig, told)} == {"checkpoint chain"}
    seal(rig)
    assert seen(rig) == set()
    assert {kind for kind, _ in seen(rig, told)} == {"checkpoint chain"}


FORGED = {
    "UPDATE checkpoint SET made_at = made_at - interval '1 s' WHERE number = 2": {
        "checkpoint chain",
        "checkpoint signature",
    },
    "UPDATE checkpoint SET signature = sha256(signature) || sha256(signature) WHERE number = 3": {
        "checkpoint chain",
        "checkpoint signature",
    },
    "UPDATE checkpoint SET hash = sha256(hash) WHERE number = 3": {"checkpoint chain"},
    "UPDATE checkpoint SET key_id = 'another' WHERE number = 1": {
        "checkpoint chain",
        "checkpoint signature",
    },
    "UPDATE checkpoint_head SET seq = 5 WHERE number = 2": {"checkpoint chain", "altered"},
    "DELETE FROM checkpoint_head WHERE number = 2": {"checkpoint chain"},
    "UPDATE checkpoint_head SET number = 3 WHERE number = 2": {"checkpoint chain"},
    "DELETE FROM checkpoint WHERE number = 2": {"checkpoint chain"},
    "UPDATE checkpoint SET number = 4 WHERE number = 3": {
        "checkpoint chain",
        "checkpoint signature",
    },
}


@pytest.fixture
def three(rig: Rig) -> Rig:
    """A trail under three checkpoints."""
    for number in range(3):
        delivered(rig, number)
        seal(rig)
    assert seen(rig) == set()
    return rig


def test_p8_a_forged_checkpoint_is_found(three: Rig, intruder: Intruder) -> None:
    found = {}
    for statement in FORGED:
        with intruder.connection.transaction(force_rollback=True):
            intruder.run(statement)
            export = export_on(intruder.connection, Scope())
        found[statement] = {each.kind.value for each in in_export(export)[1]}

    assert found == FORGED


def test_p8_a_checkpoint_by_somebody_elses_key_is_found(three: Rig) -> None:
    delivered(three, 4)
    seal(three, seed=OTHER_SEED)

    assert {kind for kind, _ in seen(three)} == {"checkpoint signature"}


def take_away_the_third(intruder: Intruder) -> None:
    intruder.run("DELETE FROM checkpoint WHERE number = 3")
    intruder.run("DELETE FROM checkpoint_head WHERE number = 3")


def test_p8_a_genuine_checkpoint_of_another_past_does_not_fit(
    three: Rig, intruder: Intruder
) -> None:
    intruder.run("CREATE TABLE kept AS SELECT * FROM checkpoint WHERE number = 3")
    intruder.run("CREATE TABLE kept_heads AS SELECT * FROM checkpoint_head WHERE number = 3")
    take_away_the_third(intruder)
    for number in (4, 5):
        delivered(three, number)
        seal(three)
    assert seen(three) == set()

    take_away_the_third(intruder)
    intruder.run("INSERT INTO checkpoint SELECT * FROM kept")
    intruder.run("INSERT INTO checkpoint_head SELECT * FROM kept_heads")
    intruder.run("DROP TABLE kept, kept_heads")

    assert {kind for kind, _ in seen(three)} == {"checkpoint chain"}


def test_an_old_key_still_verifies(three: Rig) -> None:
    delivered(three, 4)
    seal(three, seed=OTHER_SEED)

    _, faults = in_database(three, keys=public_keys([OTHER_SEED, SEED]))

    assert faults == []
