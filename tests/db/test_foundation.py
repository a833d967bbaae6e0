"""The ground that other database tests stand on."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.network import LeftTheMachine

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.database import Clock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def read_clock(database: Database) -> datetime:
    with database.connection() as connection:
        row = connection.execute("SELECT db_now() AS at").fetchone()
    assert row is not None
    at: datetime = row["at"]
    return at


def test_every_statement_reads_the_frozen_clock(database: Database, clock: Clock) -> None:
    clock.freeze(NOON)
    clock.advance(90)

    assert read_clock(database) == NOON + timedelta(seconds=90) == clock.now()


def test_a_clock_that_was_only_advanced_goes_on_running(database: Database, clock: Clock) -> None:
    ahead = clock.advance(3600) - timedelta(seconds=3600)

    assert read_clock(database) > ahead + timedelta(seconds=3600)


def test_two_tests_never_share_a_database(database: Database, clock: Clock) -> None:
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=60)
    with database.connection() as connection:
        found = connection.execute("SELECT count(*) AS n FROM notice").fetchone()
    assert found == {"n": 0}


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "example.org"])
def test_no_test_can_leave_the_machine(address: str) -> None:
    with pytest.raises(LeftTheMachine):
        socket.create_connection((address, 25), timeout=1)
