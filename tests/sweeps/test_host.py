"""One process as a whole: what it starts, what it says of itself, how it stops."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import psycopg
import pytest

from notifier.store import schema
from notifier.store.database import Database
from notifier.store.embedded import ensure_running
from notifier.store.reads.sweeps import leader_view, process_views
from notifier.sweeps.host import SweepHost
from notifier.sweeps.leader import Leader
from tests.sweeps.conftest import Probe
from tests.sweeps.waiting import AT_ONCE_S, until

RunHost = Callable[..., SweepHost]
AnotherDatabase = Callable[[], Database]


def parts(host: SweepHost) -> dict[str, tuple[bool, str]]:
    return {part.part: (part.ok, part.detail) for part in host.readiness()}


def is_ready(host: SweepHost) -> bool:
    return all(part.ok for part in host.readiness())


RECOVERED_S = 15.0
"""Within this the product goes on after its database was away."""


def ran(probe: Probe, name: str, more: int = 2) -> None:
    wanted = probe.runs[name] + more
    until(lambda: probe.runs[name] >= wanted, what=name)


def test_a_lone_process_leads_sweeps_and_is_ready(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry", "rescue")

    until(lambda: probe.runs["expiry"])
    until(lambda: {"leader", "scheduler", "sweep:expiry"} <= set(parts(host)))
    until(lambda: is_ready(host))
    assert parts(host)["leader"] == (True, "this process leads, term 1")
    assert host.clock.known()
    with database.connection() as connection:
        (process,) = process_views(connection)
    assert (process.owner, process.pid, process.workers) == (host.owner, os.getpid(), 2)
    assert process.stopped_at is None


def test_p9_when_the_leader_stops_another_process_goes_on_at_once(
    database: Database, another_database: AnotherDatabase, run_host: RunHost
) -> None:
    first_probe, second_probe = Probe(), Probe()
    lease_s = 60.0
    first = run_host(database, first_probe, "expiry", ttl=lease_s)
    ran(first_probe, "expiry")
    second = run_host(another_database(), second_probe, "expiry", ttl=lease_s)
    until(lambda: "leads" in parts(second)["leader"][1])
    ran(first_probe, "expiry")
    assert second_probe.runs["expiry"] == 0

    first.stop()
    assert until(lambda: second_probe.runs["expiry"]) < AT_ONCE_S < lease_s / 2
    with database.connection() as connection:
        views = {view.owner: view for view in process_views(connection)}
    assert views[first.owner].stopped_at is not None
    assert views[second.owner].stopped_at is None


def test_a_process_that_only_serves_never_leads_and_stays_ready(
    database: Database, another_database: AnotherDatabase, probe: Probe, run_host: RunHost
) -> None:
    serving = run_host(another_database(), Probe(), "expiry", workers=0)
    time.sleep(0.5)
    assert not serving.leader.is_leader()
    leading = run_host(database, probe, "expiry")
    ran(probe, "expiry")
    leading.stop()

    until(lambda: "last good run" in parts(serving).get("sweep:expiry", (True, ""))[1])
    until(lambda: "nobody seen leading" in parts(serving)["leader"][1])
    assert is_ready(serving)
    assert serving.clock.known()
    assert not serving.leader.is_leader()


def test_p11_b134_a_hung_sweep_shows_while_the_others_go_on(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry", "rescue")
    ran(probe, "expiry")
    probe.held.add("expiry")

    until(lambda: not parts(host)["sweep:expiry"][0])
    ran(probe, "rescue")
    assert "running for" in parts(host)["sweep:expiry"][1]
    assert parts(host)["sweep:rescue"][0]
    assert parts(host)["scheduler"][0]

    probe.held.clear()
    probe.go.set()
    until(lambda: is_ready(host))


def test_p11_a_sweep_that_keeps_failing_shows_while_the_others_go_on(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    probe.failing.add("expiry")
    host = run_host(database, probe, "expiry", "rescue")

    until(lambda: parts(host).get("sweep:expiry", (True, ""))[0] is False)
    ran(probe, "rescue")
    assert "failing: UndefinedTable 42P01" in parts(host)["sweep:expiry"][1]
    assert parts(host)["sweep:rescue"][0]


def test_b088_under_the_reloader_only_the_serving_child_starts_anything(
    database: Database, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = threading.active_count()
    host = SweepHost(
        database, workers=1, version="x", bodies=probe.bodies("expiry"), period_of=lambda _: 0.2
    )
    try:
        assert not host.start(reloader=True)
        assert threading.active_count() == before

        monkeypatch.setenv("WERKZEUG_RUN_MAIN", "true")
        assert host.start(reloader=True)
        until(lambda: probe.runs["expiry"])
        assert not host.start(reloader=True)
    finally:
        host.stop()


def test_b130_a_forked_child_starts_nothing_with_its_parents_host(
    database: Database, probe: Probe, run_host: RunHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = run_host(database, probe, "expiry")
    until(host.leader.is_leader)

    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: 1)
        assert not host.leader.is_leader()
        with pytest.raises(RuntimeError, match="after the fork"):
            host.start()
        host.stop()

    ran(probe, "expiry")


def test_stopping_lets_the_running_batch_end_and_gives_the_lease_back(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry")
    ran(probe, "expiry")
    probe.held.add("expiry")
    until(lambda: "expiry" in probe.stuck)
    before = probe.runs["expiry"]
    threading.Timer(0.3, probe.go.set).start()

    host.stop()

    assert probe.runs["expiry"] == before + 1
    with database.connection() as connection:
        view = leader_view(connection)
    assert view is not None
    assert not view.held
    time.sleep(0.5)
    assert probe.runs["expiry"] == before + 1


def seconds_of(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def test_b136_readiness_answers_while_the_pool_is_used_up(
    database: Database, probe: Probe, run_host: RunHost
) -> None:
    host = run_host(database, probe, "expiry")
    ran(probe, "expiry")
    until(lambda: is_ready(host))
    taken = [database.connection() for _ in range(8)]
    held = []
    for one in taken:
        try:
            one.__enter__()
        except Exception as error:  # noqa: BLE001 - the host holds some for itself
            assert "StoreUnavailable" in type(error).__name__  # noqa: PT017
            break
        held.append(one)
    try:
        assert min(seconds_of(host.readiness) for _ in range(5)) < 0.05
    finally:
        for one in held:
            one.__exit__(None, None, None)


class SweepingProcess:
    """A process of its own that runs a host; prints when its sweep ran.

    All processes share the monotonic clock, so `lines` hold its times, whenever they are read.
    """

    def __init__(self, url: str) -> None:
        script = Path(__file__).with_name("sweeping_process.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), url], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.lines: list[float] = []
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,))
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self.lines.append(float(line))

    def close(self) -> int:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        code = self.process.wait(20)
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def sweeping_process(database_url: str) -> Iterator[SweepingProcess]:
    process = SweepingProcess(database_url)
    yield process
    assert process.close() == 0


def test_b086_a_process_frozen_for_five_seconds_goes_on_without_a_burst(
    sweeping_process: SweepingProcess,
) -> None:
    lines = sweeping_process.lines
    until(lambda: len(lines) >= 3)

    sweeping_process.process.send_signal(signal.SIGSTOP)
    time.sleep(5)
    woken = time.monotonic()
    sweeping_process.process.send_signal(signal.SIGCONT)

    until(lambda: lines[-1] > woken + 0.5)
    ran = [line for line in lines if line > woken]
    assert ran[0] < woken + AT_ONCE_S
    # Twenty-five runs were missed, one per 0.2 s: none is caught up.
    assert len([line for line in ran if line < ran[0] + 0.5]) <= 5


@pytest.fixture
def server_folder() -> Iterator[Path]:
    """A folder for a Postgres that the test may stop; the server's user can reach it."""
    folder = Path(tempfile.mkdtemp(prefix="notifier-restart-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("outlasts_the_lease", [False, True], ids=["restart", "long"])
def test_b084_it_goes_on_after_postgres_was_stopped_and_started(
    server_folder: Path, probe: Probe, run_host: RunHost, outlasts_the_lease: bool
) -> None:
    server = ensure_running(server_folder, settings={"fsync": "off"})
    database = Database(server.url)
    schema.upgrade(database.sqlalchemy_url)
    host = run_host(database, probe, "expiry", "rescue")
    try:
        ran(probe, "expiry")
        until(lambda: is_ready(host))
        server.stop()
        if outlasts_the_lease:
            until(lambda: not is_ready(host))
            until(lambda: not host.leader.is_leader())
        server = ensure_running(server_folder, settings={"fsync": "off"})

        again = time.monotonic()
        ran(probe, "expiry")
        ran(probe, "rescue")
        assert time.monotonic() - again < RECOVERED_S
        until(lambda: is_ready(host))
    finally:
        host.stop()
        database.close()
        server.stop()


def test_everything_opened_is_closed_at_the_stop(
    database_url: str, probe: Probe, run_host: RunHost
) -> None:
    own = Database(database_url, search_path="test_clock,notifier", application_name="closing")
    host = run_host(own, probe, "expiry")
    ran(probe, "expiry")

    host.stop()
    own.close()

    with psycopg.connect(database_url, autocommit=True) as connection:
        until(
            lambda: (
                connection.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
                ).fetchone()
                == (0,)
            )
        )
    assert not [thread.name for thread in threading.enumerate() if "sweeps-" in thread.name]
    assert Leader(own, "x").epoch is None
