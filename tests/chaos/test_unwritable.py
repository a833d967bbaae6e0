"""The database answers and takes no writes: what came of a call is kept, nothing else starts."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from notifier.store.embedded import EmbeddedPostgresError
from peers.events import Event, build_event
from tests.chaos.conftest import Cluster, Run, Surround
from tests.database import create_database, fill_template, url_of
from tests.running import SHORT_TIMES, RunningApp, lives, until

PATIENT = SHORT_TIMES.replace("email = 1.5", "email = 15.0").replace("lease_s = 4.5", "lease_s = 8")
BACK_WITHIN_S = 30.0
DISK_BYTES = 192 * 1024 * 1024
CHUNK = 1024 * 1024
HELD = 6
MOST_THAT_FIT = 500


@contextmanager
def read_only(cluster: Cluster) -> Iterator[None]:
    """Every session, present ones too, refuses to write."""
    with psycopg.connect(cluster.server.superuser_url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        connection.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE")
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            connection.execute("SELECT pg_reload_conf()")


def part(app: RunningApp, name: str) -> tuple[bool, str]:
    return app.readiness()[1].get(name, (True, "not told"))


def test_p3_in_a_read_only_database_the_outcome_is_kept_and_nothing_starts(
    cluster: Cluster, fragile_url: str, surround: Surround, run: Run
) -> None:
    around = surround(fragile_url, policy=PATIENT)
    app = run(around)
    asked, linking = build_event(fate="mail:hold"), build_event(fate="link:hold")
    for event in (asked, linking):
        app.admit(event)
    around.inbox.wait_for(phase="held", recipient=asked["destinations"]["email"])
    around.auth.wait_for(phase="held", event_id=linking["event_id"])

    with read_only(cluster):
        until(
            lambda: part(app, "database") == (False, "takes no writes"),
            20,
            lambda: f"readiness to say so: {app.readiness()[1]}",
        )
        around.inbox.release()
        around.auth.script(reset_request_id=linking["reset_request_id"])
        around.auth.release()
        until(lambda: not part(app, "outcomes")[0], 20, lambda: str(app.readiness()[1]))
        refused = app.post(build_event())
        assert (refused.status, refused.json()["code"]) == (503, "not_admitted")
        assert int(refused.headers["retry-after"]) > 0
        assert app.email(asked["event_id"])["state"] == "attempted"
        assert around.mails(linking) == [], "a start was not written down"

    for event in (asked, linking):
        assert app.settled(event["event_id"], within_s=40)["state"] == "complete"
        assert len(around.mails(event)) == 1
        assert len(app.email(event["event_id"])["attempts"]) == 1
    until(lambda: app.readiness()[0], BACK_WITHIN_S, lambda: f"ready: {app.readiness()[1]}")


class SmallDisk:
    """A Postgres whose whole data lies on a file system that can be filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = Cluster(folder)
        with psycopg.connect(self.cluster.server.superuser_url, autocommit=True) as connection:
            connection.execute(create_database("work"))
        self.url = url_of(self.cluster.server, "work")
        fill_template(self.url)
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Take every byte that is left."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (CHUNK, 4096):
                with suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass

    def free(self) -> None:
        """Give them back, and start the server where it gave up."""
        self._filler.unlink()
        if not lives(self.cluster.server.pid):
            self.cluster.start()


@pytest.fixture
def small_disk() -> Iterator[SmallDisk]:
    """Needs the right to mount a tmpfs, which root has outside the narrowest containers."""
    folder = Path(tempfile.mkdtemp(prefix="notifier-disk-"))
    options = f"size={DISK_BYTES},mode=0711"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip("a disk of its own to fill needs the right to mount one, which is denied here")
    try:
        disk = SmallDisk(folder)
        yield disk
        with suppress(EmbeddedPostgresError):
            disk.cluster.close()
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        shutil.rmtree(folder)


def refused_at_last(app: RunningApp) -> tuple[list[Event], Event]:
    """Post until the full disk is felt; what was acknowledged, and the one that was not."""
    acknowledged: list[Event] = []
    for _ in range(MOST_THAT_FIT):
        event = build_event()
        with suppress(OSError):
            answer = app.post(event)
            if answer.status == 202:
                acknowledged.append(event)
                continue
            assert answer.status == 503, answer.body
        return acknowledged, event
    raise AssertionError("the disk was never felt to be full")


def test_p3_a_full_disk_loses_and_doubles_nothing(
    small_disk: SmallDisk, surround: Surround, run: Run
) -> None:
    around = surround(small_disk.url, policy=PATIENT)
    app = run(around)
    held = [build_event(fate="mail:hold") for _ in range(HELD)]
    for event in held:
        app.admit(event)
    around.inbox.wait_for(count=HELD, phase="held")

    small_disk.fill()
    acknowledged, refused = refused_at_last(app)
    around.inbox.release()
    assert app.serves()
    small_disk.free()

    until(lambda: app.readiness()[0], 60, lambda: f"ready: {app.readiness()[1]}")
    stored = {row["event_id"] for row in around.rows("SELECT event_id FROM admission")}
    assert {event["event_id"] for event in (*held, *acknowledged)} <= stored
    app.admit(refused)
    for event in (*held, *acknowledged, refused):
        email = app.wait_for_email(event["event_id"], "accepted", "unknown", within_s=40)
        mails = len(around.mails(event))
        assert mails == 1 if email["state"] == "accepted" else mails <= 1
    assert len(around.stored()) == len(set(around.stored()))
