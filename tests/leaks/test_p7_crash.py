"""Ends in the middle of a call, with link, address and message in memory (P7)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from notifier.store.embedded import EmbeddedServer
from peers.app_process import NotStarted
from tests.leaks.faults import Connection, said, until
from tests.leaks.search import find, told
from tests.leaks.stage import Stage, connect, descendants, dump, kill, stage

HEARTBEATS = ("leader", "process", "sweep_run")


@contextmanager
def searched(folder: Path, server: EmbeddedServer, database_url: str) -> Iterator[Stage]:
    """An application whose every trace is searched at the end."""
    folder.chmod(0o711)
    with stage(folder, database_url) as played:
        yield played
        assert played.app is not None
        played.app.close()
        played.said.append(dump(server.bin_dir, database_url))
        found = find(played.canaries.needles(), played.leftovers())
        assert not found, told(found)


def hold_two(played: Stage, tag: str) -> None:
    """One message that waits for the final reply, one that waits for its link's second byte."""
    known = len(played.inbox.held())
    asked = played.event(f"asked-{tag}", first=[{"hold": True}])
    for event in (played.event(f"sent-{tag}", mail="hold"), asked):
        assert played.post(event).status == 202
    until(lambda: len(played.inbox.held()) > known and played.auth.held(), "two held calls")
    assert any(played.canaries.token in mail["text"] for mail in played.inbox.messages())


def test_p7_a_crash_and_a_stop_with_a_message_in_hand_leave_nothing(
    tmp_path: Path, postgres: EmbeddedServer, database_url: str
) -> None:
    with searched(tmp_path, postgres, database_url) as played:
        app = played.start(core=True)
        hold_two(played, "crash")
        kill(played.worker(), signal.SIGSEGV)
        until(app.ended, "the end of the application")
        played.inbox.release()
        played.auth.release()
        assert said(played, "Segmentation fault") == 1
        assert not list(played.root.glob("core*"))
        played.start()
        hold_two(played, "stop")
        kill(played.processes()[0], signal.SIGTERM)
        played.inbox.release(drop=True)
        played.auth.release()


def test_p7_a_start_and_a_stop_that_fail_on_what_the_database_says_do_not_repeat_it(
    tmp_path: Path, postgres: EmbeddedServer, database_url: str
) -> None:
    with searched(tmp_path, postgres, database_url) as played, connect(database_url) as connection:
        canary = played.canaries.address()
        played.start()
        pid = played.processes()[0]
        for table in HEARTBEATS:
            quote(connection, table, canary)
        kill(pid, signal.SIGTERM)
        assert played.app is not None
        played.app.close()
        assert not descendants(pid)
        for table in HEARTBEATS:
            restore(connection, table)
        quote(connection, "policy_revision", canary)
        with pytest.raises(NotStarted):
            played.start()
        restore(connection, "policy_revision")
        assert said(played, "InvalidTextRepresentation") > 1
        assert said(played, "start_failed") == 1
        assert said(played, "Traceback") == 0


def quote(connection: Connection, table: str, canary: str) -> None:
    """Put a view in the table's place that fails with the canary in the error's own words."""
    failing = f"(SELECT '{canary}'::text FROM pg_catalog.pg_class LIMIT 1)::integer > 0"  # noqa: S608
    connection.execute(f"ALTER TABLE {table} RENAME TO {table}_kept".encode())
    view = f"CREATE VIEW {table} AS SELECT * FROM {table}_kept WHERE {failing}"  # noqa: S608
    connection.execute(view.encode())


def restore(connection: Connection, table: str) -> None:
    """Put the table back."""
    connection.execute(f"DROP VIEW {table}".encode())
    connection.execute(f"ALTER TABLE {table}_kept RENAME TO {table}".encode())
