"""P2: what was answered is stored, and what was not answered leaves nothing half stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from notifier.domain.event import Admitted
from notifier.store.database import StoreUnavailable
from tests.db.rig import TRANSPORT, Rig
from tests.db.waiting import Watch, begin

TABLES = ("admission", "reset_event", "notice", "delivery", "contact", "ticket_link", "transition")
STOP_IN_THE_MIDDLE = """
    CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;
    CREATE TRIGGER wait_here AFTER INSERT ON transition FOR EACH ROW EXECUTE FUNCTION wait_here();
"""


def stored(rig: Rig) -> dict[str, int]:
    return {table: rig.count(table) for table in TABLES}


NOTHING = dict.fromkeys(TABLES, 0)


@contextmanager
def standing_still(rig: Rig) -> Iterator[None]:
    """Admissions stop with every row written and nothing committed."""
    rig.run(STOP_IN_THE_MIDDLE)
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(42)")
        yield


def test_p2_when_the_answer_is_there_another_connection_sees_everything(
    rig: Rig, database_url: str
) -> None:
    notice_id = rig.admit(ticket_id="ticket-1")

    with psycopg.connect(database_url, options="-c search_path=notifier") as other:
        for table, rows in {"admission": 1, "notice": 1, "delivery": 2, "transition": 3}.items():
            found = other.execute(
                f"SELECT count(*) FROM {table} WHERE notice_id = %s",  # noqa: S608
                [notice_id],
            )
            assert found.fetchone() == (rows,)
        assert other.execute("SELECT count(*) FROM ticket_link").fetchone() == (1,)


def test_p2_nothing_is_seen_and_nobody_is_answered_before_the_commit(
    rig: Rig, watch: Watch
) -> None:
    with standing_still(rig):
        answer = begin(lambda: rig.admission.admit(rig.event(), TRANSPORT))
        watch.until_blocked()

        assert stored(rig) == NOTHING
        assert not answer.done()
    assert isinstance(answer.result(10), Admitted)
    assert stored(rig)["transition"] == 3


def test_p2_a_backend_killed_in_the_middle_leaves_nothing_and_can_be_asked_again(
    rig: Rig, watch: Watch
) -> None:
    event = rig.event()
    with standing_still(rig):
        answer = begin(lambda: rig.admission.admit(event, TRANSPORT))
        watch.until_blocked()
        watch.kill_who_waits()

        with pytest.raises(StoreUnavailable):
            answer.result(10)
        assert stored(rig) == NOTHING
    assert rig.told == []

    again = rig.admission.admit(event, TRANSPORT)

    assert isinstance(again, Admitted)
    assert not again.replayed


def test_p1_a_first_admission_that_failed_is_not_remembered(rig: Rig) -> None:
    event = rig.event()
    rig.run("ALTER TABLE transition ADD CONSTRAINT broken CHECK (seq <> 3)")
    with pytest.raises(psycopg.errors.CheckViolation):
        rig.admission.admit(event, TRANSPORT)

    assert stored(rig) == NOTHING
    assert rig.told == []

    rig.run("ALTER TABLE transition DROP CONSTRAINT broken")
    again = rig.admission.admit(event, TRANSPORT)

    assert isinstance(again, Admitted)
    assert not again.replayed


def test_p2_who_loses_the_race_is_answered_only_once_the_winner_is_durable(
    rig: Rig, watch: Watch
) -> None:
    event = rig.event()
    with standing_still(rig):
        answers = [begin(lambda: rig.admission.admit(event, TRANSPORT)) for _ in range(2)]
        watch.until_blocked(2)
        assert not any(answer.done() for answer in answers)

    results = [answer.result(10) for answer in answers]

    assert sorted(result.replayed for result in results) == [False, True]
