"""The bell: nothing rung is missed, other processes hear it soon, Postgres is not flooded."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from notifier.store.database import Database
from notifier.sweeps import wakeup as wakeup_module
from notifier.sweeps.line import time_boxed
from notifier.sweeps.wakeup import CHANNEL, NOTIFY_EVERY_S, Wakeup, kick
from tests.sweeps.waiting import AT_ONCE_S, until

AnotherDatabase = Callable[[], Database]
StartBell = Callable[..., Wakeup]


@pytest.fixture
def start_bell() -> Iterator[StartBell]:
    started: list[Wakeup] = []

    def start(database: Database, **settings: float) -> Wakeup:
        bell = Wakeup(database, **settings)
        bell.start()
        started.append(bell)
        until(lambda: bell.silent_s() is not None)
        # The listener's first full claim rings too.
        bell.wait(1)
        return bell

    yield start
    for bell in started:
        bell.stop()


def waited(bell: Wakeup, timeout: float) -> float:
    began = time.monotonic()
    bell.wait(timeout)
    return time.monotonic() - began


def test_a_ring_before_the_wait_is_not_missed(database: Database) -> None:
    bell = Wakeup(database)
    bell.ring()

    assert waited(bell, 60) < AT_ONCE_S
    assert waited(bell, 0.1) >= 0.1


def test_every_waiting_loop_hears_one_ring(database: Database) -> None:
    bell = Wakeup(database)
    times: list[float] = []
    loops = [threading.Thread(target=lambda: times.append(waited(bell, 60))) for _ in range(4)]
    for loop in loops:
        loop.start()
    until(lambda: len(bell._rung._waiters) == 4)  # type: ignore[attr-defined]

    bell.ring()
    for loop in loops:
        loop.join(AT_ONCE_S)

    assert len(times) == 4


def test_a_ring_reaches_the_other_processes_within_the_goal(
    database: Database, another_database: AnotherDatabase, start_bell: StartBell
) -> None:
    here, there = start_bell(database), start_bell(another_database())
    times = []
    for _ in range(60):
        began = time.monotonic()
        here.ring()
        there.wait(1)
        times.append(time.monotonic() - began)
        time.sleep(random.uniform(0, 0.06))

    # Half of them, for a machine with other work to do is late now and then.
    assert statistics.median(times) < 0.1
    assert statistics.quantiles(times, n=20)[18] < 0.9


def test_many_rings_become_few_notifications(
    database: Database, database_url: str, start_bell: StartBell
) -> None:
    bell = start_bell(database)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"LISTEN {CHANNEL}")
        began = time.monotonic()
        while time.monotonic() - began < 0.5:
            bell.ring()
        rang_s = time.monotonic() - began
        heard = list(connection.notifies(timeout=0.3))

    assert 1 <= len(heard) <= rang_s / NOTIFY_EVERY_S + 2


def test_its_own_notification_does_not_wake_a_process_twice(
    database: Database, start_bell: StartBell
) -> None:
    bell = start_bell(database)
    bell.ring()
    bell.wait(1)

    assert waited(bell, 0.3) >= 0.3


def test_a_lost_listening_connection_is_replaced_and_followed_by_a_full_claim(
    database: Database, another_database: AnotherDatabase, start_bell: StartBell
) -> None:
    here, there = start_bell(database), start_bell(another_database())

    with database.connection() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )

    assert waited(there, 60) < AT_ONCE_S
    here.ring()
    assert waited(there, 60) < AT_ONCE_S


class MuteableProxy:
    """Forwards TCP to a server's unix socket; a line once muted stays open and says nothing."""

    def __init__(self, socket_path: Path) -> None:
        self._target = str(socket_path)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._opened: list[socket.socket] = []
        self._mute: set[socket.socket] = set()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def mute_present_lines(self) -> None:
        """Forward nothing more on the lines that exist now; later ones work."""
        self._mute = set(self._opened)

    def _run(self) -> None:
        while not self._closing.is_set():
            audible = [one for one in self._peers if one not in self._mute]
            ready, _, _ = select.select([self._listener, *audible], [], [], 0.02)
            for one in ready:
                if one is self._listener:
                    self._join()
                elif one in self._peers and one not in self._mute:
                    self._pass_on(one)

    def _join(self) -> None:
        near, _ = self._listener.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(self._target)
        self._peers[near], self._peers[far] = far, near
        self._opened += [near, far]

    def _pass_on(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if data := one.recv(65536):
                self._peers[one].sendall(data)
                return
        with contextlib.suppress(OSError):
            self._peers[one].shutdown(socket.SHUT_RDWR)
        del self._peers[one]

    def close(self) -> None:
        self._closing.set()
        self._thread.join(5)
        for one in [self._listener, *self._opened]:
            one.close()


@pytest.fixture
def proxy(database_url: str) -> Iterator[MuteableProxy]:
    given = conninfo_to_dict(database_url)
    made = MuteableProxy(Path(str(given["host"])) / f".s.PGSQL.{given['port']}")
    yield made
    made.close()


def through(proxy: MuteableProxy, database_url: str) -> Database:
    given = conninfo_to_dict(database_url)
    url = (
        f"postgresql://{given['user']}@127.0.0.1:{proxy.port}/{given['dbname']}"
        f"?passfile={given['passfile']}"
    )
    return Database(url, search_path="test_clock,notifier")


def test_a_line_that_went_mute_is_noticed_and_replaced(
    proxy: MuteableProxy,
    database: Database,
    database_url: str,
    start_bell: StartBell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wakeup_module, "time_boxed", lambda line: time_boxed(line, 0.5))
    behind = through(proxy, database_url)
    here, there = start_bell(database), start_bell(behind, keepalive_every_s=0.3)
    here.ring()
    assert waited(there, 60) < AT_ONCE_S

    proxy.mute_present_lines()

    # What was said meanwhile is made up for by the full claim after reconnecting.
    assert waited(there, 60) < AT_ONCE_S
    here.ring()
    assert waited(there, 60) < AT_ONCE_S
    there.stop()
    behind.close()


def test_stopping_lets_every_waiter_go(database: Database, start_bell: StartBell) -> None:
    bell = start_bell(database)
    threading.Timer(0.2, bell.stop).start()

    assert waited(bell, 60) < AT_ONCE_S


def queue_a_delivery(database: Database, *, due: str, stop: str) -> None:
    with database.connection() as connection:
        connection.execute(
            "INSERT INTO delivery (notice_id, channel, state, reason, stop_at, expires_at, due_at,"
            " changed_at) SELECT gen_random_uuid(), 'email', 'queued', 'primary_selected',"
            f" db_now() + interval '{stop}', db_now() + interval '1 hour',"
            f" db_now() + interval '{due}', db_now()"
        )


@pytest.mark.parametrize(
    ("due", "stop", "rings"),
    [("-1 s", "1 min", 1), ("1 min", "2 min", 0), ("-1 min", "-1 s", 0)],
    ids=["due", "not yet", "too late"],
)
def test_the_kick_rings_only_if_a_row_is_due(
    database: Database, database_url: str, due: str, stop: str, rings: int
) -> None:
    queue_a_delivery(database, due=due, stop=stop)
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")

        with database.connection() as connection:
            assert kick(connection) == 0

        assert len(list(listener.notifies(timeout=0.2))) == rings
