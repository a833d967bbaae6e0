"""The process's idea of the database's time: never early, never guessed."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from notifier import clock as clock_module
from notifier.clock import ClockUnknown, DatabaseClock, steady
from notifier.store.database import Database
from tests.database import Clock

SLOW = timedelta(seconds=5)
"""More than a question takes on a busy machine, and far less than the clocks here are apart."""


def refreshed(database: Database, age_limit_s: float = 30.0) -> DatabaseClock:
    held = DatabaseClock(age_limit_s)
    with database.connection() as connection:
        held.refresh(connection)
    return held


def test_p5_it_is_never_earlier_than_the_database(database: Database, clock: Clock) -> None:
    clock.advance(-3 * 3600)
    held = refreshed(database)

    for _ in range(200):
        database_time = clock.now()
        assert timedelta(0) <= held.now() - database_time < SLOW


def test_a_clock_never_read_gives_no_time() -> None:
    held = DatabaseClock()

    with pytest.raises(ClockUnknown, match="never read"):
        held.now()
    assert held.age_s() is None
    assert not held.known()


def test_an_old_measurement_is_not_used(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = refreshed(database, age_limit_s=30)
    later = steady() + 29
    monkeypatch.setattr(clock_module, "steady", lambda: later)
    assert held.known()
    assert held.now().tzinfo is UTC

    later += 2
    with pytest.raises(ClockUnknown, match="31 s ago"):
        held.now()
    assert not held.known()


def test_it_does_not_look_at_the_wall_clock(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = refreshed(database)
    before = held.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)

    assert timedelta(0) <= held.now() - before < SLOW


def test_a_database_that_moved_is_followed_at_the_next_refresh(
    database: Database, clock: Clock
) -> None:
    held = refreshed(database)
    noon = clock.freeze(datetime(2027, 3, 28, 0, 59, 59, tzinfo=UTC))

    with database.connection() as connection:
        held.refresh(connection)

    assert timedelta(0) <= held.now() - noon < SLOW
    age_s = held.age_s()
    assert age_s is not None
    assert timedelta(seconds=age_s) < SLOW
