"""Hours kept in memory: the same minutes as the tables have, read once, and only when over."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from notifier.store.database import Database
from notifier.store.reads import rollups
from notifier.store.reads.counted_hours import CountedHours
from notifier.store.reads.rollups import HOUR, MINUTE, Minute, Narrowing
from tests.signals import seeding

ALL = Narrowing()


class Day:
    """A counted day up to noon, and one process that reads it."""

    def __init__(self, database: Database, noon: datetime, most: int) -> None:
        self._database = database
        self.noon = noon
        self.hours = CountedHours(most)

    def counted(self, began: datetime, until: datetime) -> None:
        with self._database.connection() as connection:
            seeding.span(connection, began, until)

    def recount(self, began: datetime) -> None:
        """The counter began anew: another span and none of the old ones."""
        with self._database.connection() as connection:
            connection.execute("DELETE FROM rollup_span")
            seeding.span(connection, began, self.noon)

    def go_on(self, until: datetime) -> None:
        with self._database.connection() as connection:
            connection.execute("UPDATE rollup_span SET counted_until = %s", [until])

    def add(self, at: datetime, n: int = 1, **by: str) -> None:
        with self._database.connection() as connection:
            seeding.count(connection, at, "created", n, **by)

    def read(
        self, since: datetime, until: datetime, narrowing: Narrowing = ALL
    ) -> tuple[Minute, ...]:
        with self._database.connection() as connection:
            return self.hours.load_minutes(connection, since, until, narrowing)

    def stored(
        self, since: datetime, until: datetime, narrowing: Narrowing = ALL
    ) -> tuple[Minute, ...]:
        with self._database.connection() as connection:
            return rollups.load_minutes(connection, since, until, narrowing)

    def events_in(self, hour: datetime, narrowing: Narrowing = ALL) -> int:
        found = self.read(hour, hour + HOUR, narrowing)
        return sum(each.count("created") or 0 for each in found)


@pytest.fixture
def day(database: Database, noon: datetime) -> Day:
    return Day(database, noon, most=6)


NARROWINGS = [ALL, Narrowing(channel="sms"), Narrowing(region="GB"), Narrowing(template="t@1")]


@pytest.mark.parametrize("narrowing", NARROWINGS)
@pytest.mark.parametrize("begin", [240, 239, 200.5, 61, 60, 59, 3])
def test_it_reads_what_the_tables_have_twice_over(
    day: Day, database: Database, begin: float, narrowing: Narrowing
) -> None:
    day.counted(day.noon - 230 * MINUTE, day.noon - 150 * MINUTE)
    day.counted(day.noon - 149 * MINUTE, day.noon)
    for before in range(0, 241, 7):
        day.add(day.noon - before * MINUTE, before, region="GB", template="t@1")
        day.add(day.noon - before * MINUTE, 1, channel="sms", region="FR", template="t@2")
    with database.connection() as connection:
        for before in range(1, 241, 2):
            seeding.level(connection, day.noon - before * MINUTE, before)
        seeding.queue(connection, day.noon - 91 * MINUTE, 4.0)
        seeding.queue(connection, day.noon - 91 * MINUTE, 5.0, channel="sms")
    wanted = (day.noon - begin * MINUTE, day.noon + 2 * MINUTE, narrowing)
    assert day.read(*wanted) == day.stored(*wanted)
    assert day.read(*wanted) == day.stored(*wanted)


def test_an_hour_that_is_over_is_read_once_and_the_newest_each_time(day: Day) -> None:
    day.counted(day.noon - 3 * HOUR, day.noon)
    over, newest = day.noon - 2 * HOUR, day.noon - HOUR
    assert day.events_in(over) == day.events_in(newest) == 0
    day.add(over)
    day.add(newest)
    assert (day.events_in(over), day.events_in(newest)) == (0, 1)


def test_an_hour_is_kept_ten_minutes_after_its_end_and_not_before(day: Day) -> None:
    hour = day.noon - HOUR
    day.counted(hour, day.noon + timedelta(minutes=9.9))
    assert day.events_in(hour) == 0
    day.add(hour)
    assert day.events_in(hour) == 1
    day.go_on(day.noon + timedelta(minutes=10))
    assert day.events_in(hour) == 1
    day.add(hour)
    assert day.events_in(hour) == 1


def test_an_hour_with_a_gap_is_not_kept(day: Day) -> None:
    hour = day.noon - 2 * HOUR
    day.counted(hour + MINUTE, day.noon)
    assert day.events_in(hour) == 0
    day.add(hour + 5 * MINUTE)
    assert day.events_in(hour) == 1


def test_an_hour_of_another_span_is_read_anew(day: Day) -> None:
    hour = day.noon - 2 * HOUR
    day.counted(hour, day.noon)
    assert day.events_in(hour) == 0
    day.add(hour)
    day.recount(hour - MINUTE)
    assert day.events_in(hour) == 1


def test_each_narrowing_has_its_own_hours(day: Day) -> None:
    hour = day.noon - 2 * HOUR
    day.counted(hour, day.noon)
    day.add(hour, 3, region="GB")
    day.add(hour, 4, region="FR")
    assert day.events_in(hour) == 7
    assert day.events_in(hour, Narrowing(region="GB")) == 3
    assert day.events_in(hour, Narrowing(region="FR")) == 4


def test_the_least_lately_read_hour_goes_first(day: Day) -> None:
    day.counted(day.noon - 9 * HOUR, day.noon)
    first, second = day.noon - 8 * HOUR, day.noon - 7 * HOUR
    day.read(first, first + 6 * HOUR)
    day.events_in(first)
    day.events_in(day.noon - 2 * HOUR)
    day.add(first)
    day.add(second)
    assert (day.events_in(first), day.events_in(second)) == (0, 1)
