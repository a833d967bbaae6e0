"""A Postgres of our own in a folder, for `make run`, small installations and tests.

Decides when it starts and who stops it. The first process that needs it starts it, later ones
join it; each holds a shared lock on the folder for as long as it lives, and the last one to
call `stop` stops the server. A process that is killed loses its lock and stops nothing: the
server stays, and the next start joins it.

It listens on a private unix socket only, with a password from a file. Two roles exist: the
server's superuser, for tests and repairs, and `notifier`, which owns the database `notifier`
and is nothing more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from notifier.store.embedded_cluster import (
    DATABASE,
    LOOK_AGAIN_S,
    ROLE,
    SETTINGS,
    START_LIMIT_S,
    SUPERUSER,
    check_version,
    make_cluster,
    make_database,
    server_url,
    tcp_url,
    write_settings,
)
from notifier.store.embedded_ground import (
    EmbeddedPostgresError,
    Ground,
    prepare_ground,
    private_folder,
    share_ownership,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["EmbeddedPostgresError", "EmbeddedServer", "ensure_running"]

SOCKET_PORT = 5432
"""Without TCP the port is only a part of the socket's name."""
LOCK_LIMIT_S = 120.0
LOG_KEPT_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What the running server wrote into its pid file."""

    pid: int
    port: int
    on_tcp: bool


class EmbeddedServer:
    """A running server, and this process's share in it.

    `url` is the database as the role `notifier` sees it, `superuser_url` the maintenance
    database as the superuser does, `tcp_url` as `url` but over loopback (None without TCP).
    No URL holds a password; they name the file that does. `was_started`: it did not run before;
    `was_missed`: nor did it although another process used it.
    """

    def __init__(
        self,
        ground: Ground,
        postmaster: Postmaster,
        share: int,
        settings: Mapping[str, str],
    ) -> None:
        self._ground, self._settings = ground, settings
        self._share: int | None = share
        self.was_started = self.was_missed = False
        self.bin_dir = ground.bin_dir
        self.pid = postmaster.pid
        self.url = server_url(ground, postmaster.port, ROLE, DATABASE)
        self.superuser_url = server_url(ground, postmaster.port, SUPERUSER, "postgres")
        self.tcp_url = tcp_url(ground, postmaster.port) if postmaster.on_tcp else None

    def runs(self) -> bool:
        """Whether it is there now."""
        return find_postmaster(self._ground) is not None

    def start_again(self) -> None:
        """Start it where it has died, unless this process's share was given up.

        Raises as `ensure_running` does.
        """
        with locked(self._ground.home / "starting.lock", self._ground.home):
            if self._share is not None:
                listen_tcp = self.tcp_url is not None
                self.pid = join_or_start(self._ground, self._settings, listen_tcp).pid

    def stop(self) -> None:
        """Give up this process's share; the last to do so stops the server. Safe to repeat."""
        if self._share is None:
            return
        with locked(self._ground.home / "starting.lock", self._ground.home):
            os.close(self._share)
            self._share = None
            alone = os.open(self._ground.home / "users.lock", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
                stop_server(self._ground)
            except BlockingIOError:
                pass  # somebody else still uses it
            finally:
                os.close(alone)


def ensure_running(
    data_dir: Path, *, settings: Mapping[str, str] | None = None, listen_tcp: bool = False
) -> EmbeddedServer:
    """Start the server of this data folder, or join the one that runs.

    `settings` are server settings beside our own and `listen_tcp` opens a free port on
    loopback; both take effect at a start, not when joining. Raises `EmbeddedPostgresError`
    with what to do where the server cannot run.
    """
    ground = prepare_ground(data_dir)
    with locked(ground.home / "starting.lock", ground.home):
        share = open_lock(ground.home / "users.lock", ground.home)
        try:
            others = is_shared(share)
            fcntl.flock(share, fcntl.LOCK_SH)
            starts = find_postmaster(ground) is None
            all_settings = {**SETTINGS, **(settings or {})}
            postmaster = join_or_start(ground, all_settings, listen_tcp)
            make_database(ground, postmaster.port)
        except BaseException:
            os.close(share)
            raise
    server = EmbeddedServer(ground, postmaster, share, all_settings)
    server.was_started, server.was_missed = starts, starts and others
    return server


def is_shared(share: int) -> bool:
    """Whether another process holds a share in the server."""
    try:
        fcntl.flock(share, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def join_or_start(ground: Ground, settings: Mapping[str, str], listen_tcp: bool) -> Postmaster:
    """The server that runs here, or a new one."""
    found = find_postmaster(ground)
    if found is None:
        return start_server(ground, settings, listen_tcp)
    if listen_tcp and not found.on_tcp:
        raise EmbeddedPostgresError("the server already runs without TCP; stop it first")
    return found


def start_server(ground: Ground, settings: Mapping[str, str], listen_tcp: bool) -> Postmaster:
    """Make the cluster where there is none, then start the server and wait for it."""
    if not ground.data.exists():
        make_cluster(ground, durable=settings.get("fsync") != "off")
    check_version(ground)
    private_folder(ground.sockets, ground.user.uid, ground.user.gid)
    own = addresses(ground, listen_tcp)
    write_settings(ground.data / "postgresql.conf", {**settings, **own})
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        disown_stale_files(ground)
        cut_log(ground.log)
        done = pg_ctl(ground, "start", "-l", str(ground.log))
        started = find_postmaster(ground)
        if done.returncode == 0 and started is not None:
            return started
        said = log_end(ground.log)
        # Children of a killed postmaster need a moment to notice; until then the start is refused.
        if "shared memory block" not in said or time.monotonic() > deadline:
            shutil.rmtree(ground.sockets, ignore_errors=True)
            raise EmbeddedPostgresError(f"Postgres did not start: {said or done.stderr.strip()}")
        time.sleep(LOOK_AGAIN_S)


def addresses(ground: Ground, listen_tcp: bool) -> dict[str, str]:
    """Settings that say where the server listens: the socket, and loopback if asked for."""
    return {
        "listen_addresses": "127.0.0.1" if listen_tcp else "",
        "port": str(free_port() if listen_tcp else SOCKET_PORT),
        "unix_socket_directories": str(ground.sockets),
        "unix_socket_permissions": "0700",
    }


def stop_server(ground: Ground) -> None:
    """Stop it in good order: sessions are ended, everything is written."""
    if find_postmaster(ground) is None:
        return
    done = pg_ctl(ground, "stop", "-m", "fast")
    if done.returncode != 0:
        raise EmbeddedPostgresError(f"Postgres did not stop: {done.stderr.strip()}")
    shutil.rmtree(ground.sockets, ignore_errors=True)


def pg_ctl(ground: Ground, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Start or stop the server and wait until that is done."""
    waiting = ("-w", "-t", str(int(START_LIMIT_S)), "-s", "-D", str(ground.data))
    return ground.user.run(ground.bin_dir / "pg_ctl", verb, *waiting, *options)


def find_postmaster(ground: Ground) -> Postmaster | None:
    """The server that runs on this folder now, if any. A pid that was reused is not it."""
    try:
        lines = (ground.data / "postmaster.pid").read_text().splitlines()
        pid = int(lines[0])
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if os.fsencode(ground.data) not in words:
            return None
        return Postmaster(pid=pid, port=int(lines[3]), on_tcp=bool(lines[5].strip()))
    except (OSError, ValueError, IndexError):
        return None


def disown_stale_files(ground: Ground) -> None:
    """Make what a dead server left behind recognisable as such to Postgres.

    Postgres trusts a pid file whose number is alive, and after a crash that number may be
    anybody's, or a zombie's. It never believes the number of the process that starts it, and
    then still checks that no child of the dead server is left: so the file stays, with ours.
    """
    pid_file = ground.data / "postmaster.pid"
    with suppress(FileNotFoundError), pid_file.open("r+") as file:
        lines = file.read().splitlines()
        file.seek(0)
        file.write("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
        file.truncate()
    for left in ground.sockets.glob(".s.PGSQL.*"):
        left.unlink()


def cut_log(path: Path) -> None:
    """Keep one older log once it has grown."""
    if path.exists() and path.stat().st_size > LOG_KEPT_BYTES:
        path.rename(path.with_suffix(".old.log"))


def log_end(path: Path, lines: int = 5) -> str:
    """The last lines of the server's log."""
    try:
        return " / ".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def free_port() -> int:
    """A port on loopback that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def locked(path: Path, model: Path) -> Iterator[None]:
    """Hold the lock on this file alone; whoever dies gives it up."""
    descriptor = open_lock(path, model)
    deadline = time.monotonic() + LOCK_LIMIT_S
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise EmbeddedPostgresError(f"{path} is held by a stuck process") from error
            time.sleep(LOOK_AGAIN_S)
        yield
    finally:
        os.close(descriptor)


def open_lock(path: Path, model: Path) -> int:
    """Open a lock file, made where missing; closed in programs that we start."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    share_ownership(path, model)
    return descriptor
