"""`flask trail checkpoint` makes one now; `flask trail export --notice` takes any id."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from uuid import UUID

import pytest

from notifier.flow import tickets
from notifier.flow.checkpoints import Seal, checkpoint_now
from tests.db.conftest import MakeRig
from tests.db.rig import Rig
from tests.trail.tampering import KEYS, SEED, Intruder, delivered, in_database, in_export, seen
from tests.trail.test_commands import run

NEWEST = """
SELECT number, encode(hash, 'hex') AS hash, head_count FROM checkpoint
 ORDER BY number DESC LIMIT 1
"""


def test_p8_a_checkpoint_on_demand_covers_all_that_there_is_and_can_be_expected(rig: Rig) -> None:
    delivered(rig, 1)
    delivered(rig, 2)

    first = run(rig, "checkpoint")
    told = first.stdout.strip()
    delivered(rig, 3)
    second = run(rig, "checkpoint")

    made = rig.one(NEWEST)
    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    assert second.stdout.strip() == f"{made['number']}:{made['hash']}"
    assert (made["number"], made["head_count"]) == (2, 1)
    assert f"signed with {next(iter(KEYS))}" in second.stderr
    assert in_database(rig)[0].uncovered_rows == 0
    assert seen(rig) == set()
    for each in (told, second.stdout.strip()):
        assert run(rig, "verify", "--expect", each).exit_code == 0


def test_one_is_made_on_demand_although_nothing_changed_and_the_last_one_is_young(rig: Rig) -> None:
    delivered(rig, 1)
    numbers = [run(rig, "checkpoint").stdout.partition(":")[0] for _ in range(3)]
    assert numbers == ["1", "2", "3"]


def test_without_a_key_none_is_made_and_the_setting_is_named(rig: Rig) -> None:
    done = run(rig, "checkpoint", key=None)
    assert done.exit_code == 1
    assert "no NOTIFIER_CHECKPOINT_KEY is set" in done.output
    assert rig.count("checkpoint") == 0


def test_p8_what_is_too_much_for_one_is_covered_by_several(rig: Rig) -> None:
    for number in range(5):
        delivered(rig, number)
    with rig.database.connection() as connection:
        made = checkpoint_now(Seal.of(SEED), connection, limit=2)
    assert made.number == rig.count("checkpoint") == 3
    assert in_database(rig)[0].uncovered_rows == 0


def test_p9_many_on_demand_at_once_make_one_chain(make_rig: MakeRig) -> None:
    rigs = [make_rig(size=2) for _ in range(4)]
    for number in range(6):
        delivered(rigs[0], number)
    made: list[int] = []

    def make(rig: Rig) -> None:
        with rig.database.connection() as connection:
            made.extend(checkpoint_now(Seal.of(SEED), connection).number for _ in range(3))

    threads = [threading.Thread(target=make, args=[each]) for each in rigs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(made) == list(range(1, 13))
    assert rigs[0].count("checkpoint_head") == 6
    assert seen(rigs[0]) == set()


def known(rig: Rig) -> tuple[UUID, list[str]]:
    """A notice with every id that leads to it alone."""
    event = replace(rig.event(), idempotency_key="key-1")
    notice_id = rig.admit(event)
    tickets.link(rig.database, rig.desk, ticket_id="TCK-1", notice_id=notice_id, by="desk")
    row = rig.one("SELECT * FROM admission WHERE notice_id = %s", notice_id)
    names = ("event_id", "idempotency_key", "reset_request_id")
    return notice_id, [str(notice_id).upper(), "TCK-1", *(row[name] for name in names)]


def test_an_export_takes_any_id_that_leads_to_one_notice(rig: Rig) -> None:
    delivered(rig, 2)
    notice_id, ids = known(rig)
    for each in ids:
        done = run(rig, "export", "--notice", each)
        assert done.exit_code == 0, (each, done.output)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert {row["notice_id"] for row in rows if row["kind"] == "transition"} == {str(notice_id)}
        assert rows[0]["scope"] == {"notice": str(notice_id)}


@pytest.mark.parametrize(
    "unknown", ["evt-none", "0" * 8 + "-0000-7000-8000-" + "0" * 12, "not an id", "a@b.example", ""]
)
def test_an_export_of_what_nobody_knows_fails_and_writes_nothing(rig: Rig, unknown: str) -> None:
    delivered(rig, 1)
    done = run(rig, "export", "--notice", unknown)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no notice has this id" in done.stderr


def test_an_id_of_several_notices_is_told_with_each_of_them(rig: Rig) -> None:
    notices = [rig.admit(rig.event()) for _ in range(2)]
    for each in notices:
        tickets.link(rig.database, rig.desk, ticket_id="TCK-1", notice_id=each, by="desk")
    done = run(rig, "export", "--notice", "TCK-1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "2 notices have this id" in done.stderr
    assert all(str(each) in done.stderr for each in notices)


def test_p8_a_notice_of_which_only_a_trace_is_left_is_still_exported(
    rig: Rig, intruder: Intruder
) -> None:
    notice_id = delivered(rig, 1)
    intruder.run("DELETE FROM notice WHERE notice_id = %(n)s", n=notice_id)
    intruder.run("DELETE FROM admission WHERE notice_id = %(n)s", n=notice_id)
    done = run(rig, "export", "--notice", str(notice_id))
    assert done.exit_code == 0
    assert in_export(done.stdout_bytes)[0].rows == 6
