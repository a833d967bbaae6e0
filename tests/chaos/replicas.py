"""A primary and its standby, joined by synchronous replication, of which either may be broken."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg

from notifier.store.embedded import (
    EmbeddedPostgresError,
    Postmaster,
    ensure_running,
    pg_ctl,
    start_server,
    stop_server,
)
from notifier.store.embedded_cluster import (
    ROLE,
    SETTINGS,
    SUPERUSER,
    password_of,
    server_url,
    write_private,
)
from notifier.store.embedded_ground import prepare_ground
from tests.chaos.conftest import CRASHES
from tests.database import create_database, fill_template, url_of
from tests.running import lives, until

NAME = "work"
STANDBY_NAME = "other_host"


class Pair:
    """Two servers; what is committed on the first is flushed on the second before it is answered.

    `url` names both, the standby first, so that whoever connects meets it before the primary.
    """

    def __init__(self, folder: Path) -> None:
        folders = [folder / "primary", folder / "standby"]
        for each in folders:
            each.mkdir()
            each.chmod(0o711)
        self.primary = ensure_running(folders[0], settings=CRASHES)
        with psycopg.connect(self.primary.superuser_url, autocommit=True) as connection:
            connection.execute(create_database(NAME))
        fill_template(url_of(self.primary, NAME))
        self._from = prepare_ground(folders[0])
        self._to = prepare_ground(folders[1])
        try:
            self._copy()
            self.standby = self._start_standby()
            self._wait_for_it()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Both servers as the product is told of them."""
        where = urlencode(
            {
                "host": f"{self._to.sockets},{self._from.sockets}",
                "port": f"{self.standby.port},5432",
                "passfile": str(self._from.passwords),
            },
            quote_via=quote,
        )
        return f"postgresql://{ROLE}@/{NAME}?{where}"

    @property
    def standby_url(self) -> str:
        """The standby alone, whatever it is by then, as its superuser."""
        return server_url(self._to, self.standby.port, SUPERUSER, NAME)

    @property
    def primary_url(self) -> str:
        """The first primary alone, as its superuser."""
        return server_url(self._from, 5432, SUPERUSER, NAME)

    @contextmanager
    def durable(self) -> Iterator[None]:
        """As a server is configured that may lose its host; not for long, it is slow."""
        with psycopg.connect(self.primary_url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = on")
            connection.execute("SELECT pg_reload_conf()")
            until(lambda: connection.execute("SHOW fsync").fetchone() == ("on",), 10, "fsync")
            yield
            connection.execute("ALTER SYSTEM RESET fsync")
            connection.execute("SELECT pg_reload_conf()")

    def kill_primary(self) -> None:
        """As when its host dies: no session is told, and it never comes back."""
        os.kill(self.primary.pid, signal.SIGKILL)
        until(lambda: not lives(self.primary.pid), 10, "the primary to be gone")

    def promote(self) -> None:
        """Make the standby the primary, as whoever watches over the two does."""
        done = pg_ctl(self._to, "promote")
        assert done.returncode == 0, done.stderr

    def stop_standby(self) -> None:
        """In good order; commits then wait for it."""
        stop_server(self._to)

    def start_standby(self) -> None:
        """Start it again; it follows by itself."""
        self.standby = self._start_standby()

    def close(self) -> None:
        """Stop whatever still runs."""
        stop_server(self._to)
        with suppress(EmbeddedPostgresError):
            self.primary.stop()

    def _copy(self) -> None:
        password = password_of(self._from, SUPERUSER)
        source = (
            f"host={self._from.sockets} port=5432 user={SUPERUSER} password={password}"
            f" application_name={STANDBY_NAME}"
        )
        done = self._to.user.run(
            self._to.bin_dir / "pg_basebackup",
            *("-d", source, "-D", self._to.data, "-R", "--checkpoint=fast", "--no-sync"),
        )
        assert done.returncode == 0, done.stderr
        write_private(self._to.passwords, self._from.passwords.read_text())

    def _start_standby(self) -> Postmaster:
        return start_server(self._to, {**SETTINGS, **CRASHES}, listen_tcp=False)

    def _wait_for_it(self) -> None:
        with psycopg.connect(self.primary.superuser_url, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY_NAME}'")
            connection.execute("SELECT pg_reload_conf()")
            until(
                lambda: connection.execute(
                    "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
                ).fetchone(),
                20,
                "the standby to be in step",
            )


@contextmanager
def running_pair() -> Iterator[Pair]:
    """A pair of its own, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="notifier-pair-"))
    folder.chmod(0o711)
    pair = Pair(folder)
    try:
        yield pair
    finally:
        pair.close()
        shutil.rmtree(folder)
