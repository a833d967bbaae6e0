"""The table of moves stands in the code, in the database and in the reference: all the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from notifier.domain.reasons import Reason
from notifier.domain.states import CLOSED, MOVES, Channel, DeliveryState, is_permitted
from notifier.store.database import Database
from notifier.store.ledger.book import WORKER
from tests.db.rig import Rig

S = DeliveryState
PLANT = """
    UPDATE delivery SET state = %(state)s,
           lease_owner = CASE WHEN %(leased)s THEN 'worker' END,
           lease_until = CASE WHEN %(leased)s THEN db_now() END
"""
LEASED = {S.CLAIMED, S.ATTEMPTED}
# One statement tries every triple: each row that the check lets pass comes back.
TRY_ALL = """
    CREATE FUNCTION passes(start text, finish text, why text) RETURNS boolean
        LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO transition
        SELECT gen_random_uuid(), 1, db_now(), db_now(), 'e', 'r', NULL, 'email', NULL, 'worker',
               start, finish, why, NULL, NULL, NULL, NULL, 0, 't@1', 1, NULL, '', '';
        RETURN true;
    EXCEPTION WHEN check_violation THEN RETURN false;
    END $$
"""


def triples() -> set[tuple[DeliveryState | None, DeliveryState, Reason]]:
    return {(start, end, reason) for (start, end), reasons in MOVES.items() for reason in reasons}


def written(start: DeliveryState | None, end: DeliveryState) -> str:
    return f"{start or ''}>{end}"


def test_the_database_holds_the_same_moves_as_the_code(rig: Rig) -> None:
    moves = rig.one("SELECT permitted_moves() AS moves, permitted_pairs() AS pairs")

    assert sorted(moves["moves"]) == sorted(f"{written(a, b)}:{why}" for a, b, why in triples())
    assert sorted(moves["pairs"]) == sorted(written(*pair) for pair in MOVES)


def plant(database: Database, state: DeliveryState) -> None:
    """Put the delivery into a state, past the guard."""
    with database.connection() as connection:
        connection.execute("ALTER TABLE delivery DISABLE TRIGGER delivery_state_guard")
        connection.execute(PLANT, {"state": state, "leased": state in LEASED})
        connection.execute("ALTER TABLE delivery ENABLE TRIGGER delivery_state_guard")


def goes(database: Database, end: DeliveryState) -> bool:
    """Whether the database lets the planted delivery go there; undone at once."""
    with database.connection() as connection, connection.transaction(force_rollback=True):
        try:
            connection.execute(PLANT, {"state": end, "leased": end in LEASED})
        except psycopg.errors.CheckViolation:
            return False
    return True


def test_p12_the_guard_lets_exactly_the_permitted_pairs_pass(rig: Rig) -> None:
    rig.admit()
    rig.run("DELETE FROM delivery WHERE channel = 'sms'")
    wrong = []
    for start in S:
        plant(rig.database, start)
        wrong += [
            (start, end)
            for end in S
            if start is not end and goes(rig.database, end) is not ((start, end) in MOVES)
        ]

    assert wrong == []


def births() -> Iterator[DeliveryState]:
    yield from (end for start, end in MOVES if start is None)


@pytest.mark.parametrize("state", [state for state in S if state not in set(births())])
def test_no_delivery_begins_in_the_middle(rig: Rig, state: DeliveryState) -> None:
    rig.admit()
    with pytest.raises(psycopg.errors.CheckViolation, match="cannot begin"):
        rig.run(
            "INSERT INTO delivery (notice_id, channel, state, reason, stop_at, expires_at, due_at,"
            " changed_at) SELECT gen_random_uuid(), 'email', %s, 'x', db_now(), db_now(),"
            " db_now(), db_now()",
            state,
        )


def test_p8_the_trail_takes_exactly_the_permitted_moves(rig: Rig) -> None:
    """Every start, end and reason there is: 12 x 12 x 62 rows and more are tried."""
    rig.run(TRY_ALL)
    states = [None, *S]
    tried = [
        (start, end, reason)
        for start, end, reason in itertools.product(states, states, Reason)
        if start is not end
    ]
    rows = rig.rows(
        "SELECT start, finish, why FROM unnest(%s::text[], %s::text[], %s::text[])"
        " AS t (start, finish, why) WHERE passes(start, finish, why)",
        [start for start, _, _ in tried],
        [end for _, end, _ in tried],
        [reason for _, _, reason in tried],
    )

    assert len(tried) == 12 * 11 * len(Reason)
    assert {(row["start"], row["finish"], row["why"]) for row in rows} == triples()


def test_p8_a_fact_that_moves_nothing_may_have_any_reason(rig: Rig) -> None:
    rig.run(TRY_ALL)

    assert rig.one("SELECT passes('unknown', 'unknown', 'late_outcome') AS ok")["ok"]
    assert rig.one("SELECT passes(NULL, NULL, 'event_conflict') AS ok")["ok"]


def test_a_lease_belongs_to_work_and_to_nothing_else(rig: Rig) -> None:
    rig.admit()
    with pytest.raises(psycopg.errors.CheckViolation, match="lease_belongs_to_work"):
        rig.run("UPDATE delivery SET lease_owner = 'w', lease_until = db_now()")


def test_the_book_refuses_what_the_table_does_not_have(rig: Rig) -> None:
    notice_id = rig.admit()
    with (
        pytest.raises(ValueError, match="no move from queued to delivered"),
        rig.desk.open(notice_id) as book,
    ):
        book.move(Channel.EMAIL, S.DELIVERED, Reason.RECEIPT, origin=WORKER)

    assert rig.state(notice_id) == "queued"
    assert len(rig.trail(notice_id)) == 3


def test_nothing_leaves_a_closed_state() -> None:
    assert not [pair for pair in MOVES if pair[0] in CLOSED]
    assert not any(is_permitted(S.EXPIRED, end, reason) for end in S for reason in Reason)
