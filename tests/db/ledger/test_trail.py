"""P8: every change is a chained row, complete, in order, and true about the time that was left."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.flow import expiry, put_back, tickets
from notifier.flow.cancel import cancel
from notifier.store import trail
from tests.database import Clock
from tests.db import chain
from tests.db.conftest import MakeRig
from tests.db.rig import BOTH, TRANSPORT, Rig
from tests.db.test_foundation import NOON


def live_through_much(rig: Rig, clock: Clock) -> None:
    """Notices with every kind of row: moves, facts, evidence, odd characters."""
    rig.admit_for_both(correlation_id='a "quoted", 7:colon, \\ and é')
    claim = rig.start("ref-1")
    rig.record(claim, NotAccepted(Detail.UNREACHABLE, "421"), "ref-1")
    clock.advance(40)
    claim = rig.start("ref-2")
    rig.record(claim, Unknown(Reason.TIMEOUT), "ref-2")
    tickets.link(rig.database, rig.desk, ticket_id="T-1", notice_id=claim.notice_id, by="desk")
    rig.record(claim, Accepted("<id@mail.example>", "250"), "ref-2")
    other = rig.admit(rig.event(life_s=300))
    put_back.shorten(rig.desk, rig.claim_one(), rig.now() + timedelta(seconds=100))
    cancel(rig.desk, other, "used")
    late = rig.event(life_s=30)
    rig.admit(late)
    clock.advance(60)
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)
    rig.admission.admit(late, TRANSPORT)


def test_p8_the_chain_holds_for_code_that_knows_only_the_rule(
    make_rig: MakeRig, clock: Clock, database_url: str
) -> None:
    rig = make_rig(channels=BOTH)
    live_through_much(rig, clock)

    assert chain.verify_at(database_url) == rig.count("transition") > 20


SPOILT: dict[str, Any] = {
    "reason": "annotated",
    "evidence": '{"code": "999"}',
    "remaining_us": 1,
    "recorded_at": NOON,
    "occurred_at": NOON,
    "actor": "operator",
    "detail": "blocked",
    "provider_ref": "ref-9",
    "hash": b"",
    "prev_hash": b"",
}


@pytest.mark.parametrize("column", SPOILT)
def test_p8_the_check_finds_every_kind_of_change(
    make_rig: MakeRig, clock: Clock, column: str
) -> None:
    rig = make_rig(channels=BOTH)
    live_through_much(rig, clock)
    rows, heads = rig.rows(chain.ROWS), rig.rows(chain.HEADS)
    assert chain.verify(rows, heads) == len(rows)

    rows[7] = {**rows[7], column: SPOILT[column]}

    with pytest.raises(chain.Broken):
        chain.verify(rows, heads)


@pytest.mark.parametrize("row", [0, 7, -1])
def test_p8_the_check_finds_a_row_that_is_gone(make_rig: MakeRig, clock: Clock, row: int) -> None:
    rig = make_rig(channels=BOTH)
    live_through_much(rig, clock)
    rows = rig.rows(chain.ROWS)

    del rows[row]

    with pytest.raises(chain.Broken):
        chain.verify(rows, rig.rows(chain.HEADS))


def test_the_columns_under_the_hash_are_all_there_are(rig: Rig) -> None:
    rig.admit()
    [row, *_] = rig.rows("SELECT * FROM transition")

    assert [*chain.BEFORE, *chain.TIMES, *chain.AFTER] == list(trail.COLUMNS)
    # Beside them only which transaction wrote the row: that says nothing about what happened.
    assert set(row) == {*trail.COLUMNS, "prev_hash", "hash", "written_in"}


def test_p8_each_row_tells_the_time_that_was_left_when_it_was_written(
    rig: Rig, clock: Clock
) -> None:
    now = clock.freeze(NOON)
    notice_id = rig.admit()
    clock.advance(1.5)
    claim = rig.start()
    clock.advance(2.25)
    rig.record(claim, Accepted("id-1"))

    left = [row["remaining_us"] for row in rig.trail(notice_id)]

    assert left == [600_000_000] * 3 + [598_500_000] * 2 + [596_250_000]
    times = {row["recorded_at"] for row in rig.trail(notice_id)}
    assert times == {now + timedelta(seconds=after) for after in (0, 1.5, 3.75)}


def test_p8_after_expiry_the_time_left_is_below_nought(rig: Rig, clock: Clock) -> None:
    notice_id = rig.admit()
    clock.freeze(rig.notice(notice_id)["expires_at"] + timedelta(seconds=5))
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)

    assert rig.trail(notice_id)[-1]["remaining_us"] == -5_000_000


def test_what_is_told_after_the_commit_is_what_was_written(make_rig: MakeRig, clock: Clock) -> None:
    rig = make_rig(channels=BOTH)
    clock.freeze(NOON)
    live_through_much(rig, clock)

    told = {(each.notice_id, each.channel, each.to_state, each.reason) for each in rig.told}
    written = {
        (row["notice_id"], row["channel"], row["to_state"], row["reason"])
        for row in rig.rows("SELECT * FROM transition")
        if row["reason"] not in {"claimed", "attempt_started"}
    }

    assert told == written
