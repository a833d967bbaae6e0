"""What readiness and the System page read about sweeps and processes, and what it costs."""

from __future__ import annotations

import os
import re

import pytest

from notifier.metrics import Metrics
from notifier.store.database import Database
from notifier.store.reads import sweeps as reads
from notifier.store.reads.due import fallback_due
from notifier.store.reads.gauges import read
from notifier.store.reads.sweeps import (
    BACKLOGS,
    leader_view,
    process_views,
    sweep_ages,
)
from notifier.sweeps.processes import Heartbeat, owner_name, prune
from tests import people_seed
from tests.database import Clock
from tests.people_fates import ACCEPTED, Script, Step

FILL = """
    INSERT INTO delivery (notice_id, channel, state, reason, stop_at, expires_at, due_at,
                          changed_at)
    SELECT gen_random_uuid(), 'email', 'suppressed', 'no_consent', at, at, at, at
      FROM generate_series(1, 20000), (SELECT db_now() - interval '1 day' AS at) AS past
"""
QUERIES = {
    "claim": reads.DUE_TO_SEND,
    "rescue": reads.LAPSED,
    "expiry": reads.TO_EXPIRE,
    "poll": reads.TO_CHECK,
    "fallback": reads.FALLBACK_DUE,
    "receipts": reads.PARKED,
}


def run(database: Database, statement: str) -> None:
    with database.connection() as connection:
        connection.execute(statement)


def test_before_anything_ran_there_is_nothing_to_see(database: Database) -> None:
    with database.connection() as connection:
        assert sweep_ages(connection) == []
        assert leader_view(connection) is None
        assert process_views(connection) == []
        assert {name: count(connection) for name, count in BACKLOGS.items()} == dict.fromkeys(
            BACKLOGS, 0
        )


def test_every_gauge_carries_the_products_name_once(database: Database) -> None:
    names = re.findall(
        r"^# TYPE (\S+) gauge$", Metrics(lambda: read(database)).text().decode(), re.MULTILINE
    )
    assert "notifier_queue_oldest_seconds" in names
    assert {name.count("notifier") for name in names} == {1}


def test_an_age_grows_by_the_database_clock_although_nothing_writes(
    database: Database, clock: Clock
) -> None:
    clock.freeze()
    run(
        database,
        "INSERT INTO sweep_run (name, owner, epoch, started_at, finished_at)"
        " VALUES ('expiry', 'p', 3, db_now(), db_now())",
    )
    clock.advance(90)

    with database.connection() as connection:
        (age,) = sweep_ages(connection)
    assert (age.name, age.epoch, age.age_s, age.running_s) == ("expiry", 3, 90.0, None)


def test_a_run_that_never_ended_shows_how_long_it_runs(database: Database, clock: Clock) -> None:
    clock.freeze()
    run(
        database,
        "INSERT INTO sweep_run (name, owner, epoch, started_at) VALUES ('expiry','p',3,db_now())",
    )
    clock.advance(7)

    with database.connection() as connection:
        (age,) = sweep_ages(connection)
    assert (age.age_s, age.running_s) == (None, 7.0)


@pytest.mark.parametrize(("seconds", "held"), [(10, True), (-1, False)])
def test_the_lease_tells_whether_somebody_leads(
    database: Database, seconds: int, held: bool
) -> None:
    with database.connection() as connection:
        connection.execute(
            "INSERT INTO leader VALUES ('scheduler', 'p', 3, db_now() + make_interval(secs => %s))",
            [seconds],
        )

    with database.connection() as connection:
        view = leader_view(connection)
    assert view is not None
    assert view.held is held
    assert view.owner == "p"


def test_a_process_is_seen_from_its_first_beat_to_an_hour_after_its_end(
    database: Database, clock: Clock
) -> None:
    started = clock.freeze()
    owner = owner_name()
    assert f":{os.getpid()}:" in owner
    assert owner != owner_name()
    heartbeat = Heartbeat(owner, workers=16, version="1.0")
    with database.connection() as connection:
        heartbeat.beat(connection)
        clock.advance(5)
        heartbeat.beat(connection)
        clock.advance(2)
        (view,) = process_views(connection)
        assert (view.started_at, view.silent_s, view.stopped_at) == (started, 2.0, None)
        heartbeat.leave(connection)
        (view,) = process_views(connection)
        assert view.stopped_at is not None

        clock.advance(3500)
        assert prune(connection) == 0
        clock.advance(200)
        assert prune(connection) == 1


def test_a_process_that_fell_silent_is_kept_for_a_day(database: Database, clock: Clock) -> None:
    clock.freeze()
    with database.connection() as connection:
        Heartbeat("gone", workers=1, version="1.0").beat(connection)
        clock.advance(23 * 3600)
        assert prune(connection) == 0
        clock.advance(2 * 3600)
        assert prune(connection) == 1


@pytest.mark.parametrize("name", QUERIES)
def test_a_backlog_costs_the_same_whatever_the_history(database: Database, name: str) -> None:
    run(database, FILL)
    run(database, "ANALYZE delivery")
    with database.connection() as connection:
        plan = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {QUERIES[name]}",
            {"limit": 1000, "state": "accepted"},
        ).fetchone()
    assert plan is not None
    top = plan["QUERY PLAN"][0]["Plan"]
    # The catalogue's own blocks among them; the history lies in hundreds.
    assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] <= 20


def test_a_text_whose_email_has_arrived_is_no_backlog(database: Database) -> None:
    arrived = [*ACCEPTED, Step(9, "email", "delivered", "receipt")]
    with database.connection() as connection:
        people_seed.seed(
            connection,
            [
                Script("news_wanted", "email_pending", ACCEPTED, sms="+447700900145"),
                Script("arrived", "complete", arrived, basis="delivered", sms="+447700900146"),
            ],
        )
        connection.execute("UPDATE notice SET fallback_at = db_now()")
        assert BACKLOGS["fallback"](connection) == len(fallback_due(connection)) == 1


def test_a_backlog_is_counted_up_to_a_limit(database: Database) -> None:
    run(
        database,
        FILL.replace("'suppressed', 'no_consent'", "'queued', 'primary_selected'").replace(
            "SELECT gen_random_uuid(), 'email', 'queued', 'primary_selected', at, at, at, at",
            "SELECT gen_random_uuid(), 'email', 'queued', 'primary_selected',"
            " at + interval '2 days', at + interval '2 days', at, at",
        ),
    )
    with database.connection() as connection:
        assert BACKLOGS["claim"](connection) == 1000
        assert BACKLOGS["expiry"](connection) == 0
