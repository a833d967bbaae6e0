"""Reading what was counted: gaps and noughts apart, at a cost of the minutes asked for."""

from __future__ import annotations

from datetime import datetime, timedelta

from notifier.store.database import Database
from notifier.store.reads import rollups
from notifier.store.reads.rollups import MINUTE, Narrowing
from tests.database import Clock
from tests.db.rig import Rig
from tests.signals import seeding

ALL = Narrowing()


def known(database: Database, since: datetime, minutes: int) -> list[bool]:
    with database.connection() as connection:
        found = rollups.load_minutes(connection, since, since + minutes * MINUTE, ALL)
    return [each.counts is not None for each in found]


def test_a_minute_that_no_span_covers_wholly_is_a_gap(database: Database, noon: datetime) -> None:
    with database.connection() as connection:
        seeding.span(connection, noon - 10 * MINUTE, noon - 7.5 * MINUTE)
        seeding.span(connection, noon - 4.5 * MINUTE, noon - 2 * MINUTE)
    found = known(database, noon - 10 * MINUTE, 10)
    assert found == [True, True, False, False, False, False, True, True, False, False]


def test_the_present_minute_is_known_while_the_counter_is_at_work(
    database: Database, noon: datetime, clock: Clock
) -> None:
    with database.connection() as connection:
        seeding.span(connection, noon - 10 * MINUTE, noon)
    clock.advance(20)
    assert known(database, noon - MINUTE, 2) == [True, True]
    clock.advance(60)
    assert known(database, noon - MINUTE, 2) == [True, False]


def test_a_sampled_minute_without_a_queue_is_nought_and_one_without_a_sample_a_gap(
    database: Database, noon: datetime
) -> None:
    with database.connection() as connection:
        seeding.level(connection, noon)
        found = rollups.load_minutes(connection, noon, noon + 2 * MINUTE, Narrowing("sms"))
    assert [each.queue and each.queue.waiting for each in found] == [0, None]


def test_a_trend_shows_what_was_counted_of_an_interval_and_that_it_is_not_whole(
    database: Database, noon: datetime
) -> None:
    hour = timedelta(hours=1)
    with database.connection() as connection:
        seeding.span(connection, noon - 1.5 * hour, noon)
        seeding.count(connection, noon - 1.2 * hour, "expired", 2, reason="unknown")
        trend = rollups.load_trend(connection, noon - 3 * hour, hour, 3, ["expired"])
    assert trend.values("unknown") == [None, 2, 0]
    assert trend.known == (False, False, True)


def test_an_hour_costs_the_same_whatever_lies_before_it(rig: Rig, noon: datetime) -> None:
    rig.run(
        """INSERT INTO rollup_total
           SELECT %s - n * interval '1 min', 'created', 'c' || m, '', 1
             FROM generate_series(1, 10000) AS n, generate_series(1, 5) AS m""",
        noon,
    )
    rig.run("ANALYZE rollup_total")
    values = {"since": noon - 60 * MINUTE, "until": noon, "channel": None, "region": None,
              "template": None}  # fmt: skip
    with rig.database.connection() as connection:
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {rollups._IN_TOTAL}"
        row = connection.execute(explain, values).fetchone()
    assert row is not None
    plan = row["QUERY PLAN"][0]["Plan"]
    assert "'Seq Scan'" not in str(plan)
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 40
