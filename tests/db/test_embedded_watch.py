"""An embedded Postgres that dies while its owner lives is started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from notifier.store.embedded import EmbeddedServer, ensure_running
from notifier.store.embedded_watch import EmbeddedWatch
from tests.db.embedded_ground import kill_postmaster, lives
from tests.running import until

WITHIN_S = 30


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    started = ensure_running(tmp_path, settings={"fsync": "off"})
    yield started
    started.stop()


@pytest.fixture
def watch(server: EmbeddedServer) -> Iterator[EmbeddedWatch]:
    watching = EmbeddedWatch(server, first_wait_s=0.01, longest_wait_s=0.04)
    watching.start()
    yield watching
    watching.stop()


def answers(server: EmbeddedServer) -> bool:
    with suppress(psycopg.OperationalError), psycopg.connect(server.url) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)
    return False


def test_a_server_that_dies_is_started_again_with_everything_in_it_each_time(
    server: EmbeddedServer, watch: EmbeddedWatch
) -> None:
    assert watch.report() == (True, "runs")
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    for deaths in (1, 2):
        before = server.pid
        kill_postmaster(before)

        until(lambda before=before: server.pid != before and answers(server), WITHIN_S)  # type: ignore[misc]
        until(lambda: watch.report()[0], WITHIN_S)
        assert watch.report()[1].startswith(f"runs; died {deaths} times, the last time ")
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (1,)


def test_a_server_that_will_not_start_is_tried_again_and_told_of(
    server: EmbeddedServer, watch: EmbeddedWatch, tmp_path: Path
) -> None:
    broken = tmp_path / "postgres/server/data/postgresql.auto.conf"
    sound = broken.read_text()
    broken.write_text("shared_buffers = nonsense\n")
    kill_postmaster(server.pid)

    until(lambda: "2 starts failed" in watch.report()[1], WITHIN_S, lambda: str(watch.report()))
    assert not watch.report()[0]

    broken.write_text(sound)
    until(lambda: watch.report()[0] and answers(server), WITHIN_S)


def test_each_try_in_a_row_waits_twice_as_long_up_to_a_limit(server: EmbeddedServer) -> None:
    watch = EmbeddedWatch(server)
    waits = []
    for tries in range(8):
        watch._tries = tries
        waits.append(watch._wait_s())
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_share_that_was_given_up_starts_nothing(tmp_path: Path) -> None:
    server = ensure_running(tmp_path, settings={"fsync": "off"})
    server.stop()

    server.start_again()

    assert not lives(server.pid)
    assert not server.runs()


def test_whoever_starts_it_knows_whether_somebody_misses_it(tmp_path: Path) -> None:
    first = ensure_running(tmp_path, settings={"fsync": "off"})
    assert (first.was_started, first.was_missed) == (True, False)
    second = ensure_running(tmp_path)
    assert (second.was_started, second.was_missed) == (False, False)
    kill_postmaster(first.pid)

    third = ensure_running(tmp_path, settings={"fsync": "off"})

    assert (third.was_started, third.was_missed) == (True, True)
    for each in (first, second, third):
        each.stop()
    assert not lives(third.pid)
