"""Hosts, leaders and counting sweeps on this test's own database."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest
from psycopg.rows import DictRow

from notifier.store.database import Database
from notifier.sweeps.host import SweepHost
from notifier.sweeps.leader import Leader

SEARCH_PATH = "test_clock,notifier"


class Probe:
    """Sweep bodies that count their runs; one of them can be held or made to fail."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.held: set[str] = set()
        self.stuck: set[str] = set()
        self.failing: set[str] = set()
        self.go = threading.Event()

    def body(self, name: str) -> Callable[[psycopg.Connection[DictRow]], int]:
        def run(connection: psycopg.Connection[DictRow]) -> int:
            if name in self.failing:
                connection.execute("SELECT 'jo@example.org' FROM no_such_table")
            if name in self.held:
                self.stuck.add(name)
                self.go.wait(30)
            connection.execute("SELECT 1")
            self.runs[name] += 1
            return 0

        return run

    def bodies(self, *names: str) -> dict[str, Callable[[psycopg.Connection[DictRow]], int]]:
        return {name: self.body(name) for name in names}


class LeaderThread:
    """A leader that takes part in the election until it is told to stop."""

    def __init__(self, leader: Leader, on_gain: Callable[[], None] = lambda: None) -> None:
        self.leader = leader
        self.events: list[str] = []
        self._on_gain = on_gain
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.leader.run(self._gain, lambda: self.events.append("loss"), self._stop)

    def _gain(self) -> None:
        self.events.append("gain")
        self._on_gain()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(15)
        assert not self._thread.is_alive()


@pytest.fixture
def probe() -> Iterator[Probe]:
    made = Probe()
    yield made
    made.go.set()


@pytest.fixture
def another_database(database_url: str) -> Iterator[Callable[[], Database]]:
    """Further pools on the same database, as other processes have them."""
    opened: list[Database] = []

    def open_one() -> Database:
        opened.append(Database(database_url, search_path=SEARCH_PATH))
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()


@pytest.fixture
def take_part() -> Iterator[Callable[..., LeaderThread]]:
    with ExitStack() as stack:

        def start(leader: Leader, **kwargs: Callable[[], None]) -> LeaderThread:
            thread = LeaderThread(leader, **kwargs)
            stack.callback(thread.stop)
            return thread

        yield start


@pytest.fixture
def run_host() -> Iterator[Callable[..., SweepHost]]:
    with ExitStack() as stack:

        def start(database: Database, probe: Probe, *names: str, **kwargs: object) -> SweepHost:
            settings: dict[str, object] = {
                "workers": 2,
                "version": "test",
                "bodies": probe.bodies(*names),
                "period_of": lambda _: 0.2,
                "ttl": 6.0,
            }
            host = SweepHost(database, **{**settings, **kwargs})  # type: ignore[arg-type]
            host.start()
            stack.callback(host.stop)
            return host

        yield start
