"""A process that is frozen inside a transaction: the others go on without it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from notifier.store.database import Database
from tests.db.rig import Rig

LOCKS_AND_STANDS_STILL = """
import os, signal, sys
from notifier.store.database import Database

database = Database(sys.argv[1], search_path="test_clock,notifier")
with database.connection() as connection, connection.transaction():
    connection.execute("SELECT 1 FROM notice FOR UPDATE")
    print("locked", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""
SLOW_MACHINE_S = 15.0


@pytest.fixture
def frozen(rig: Rig, database_url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has locked every notice and does not run any more."""
    rig.start_new()
    process = subprocess.Popen(
        [sys.executable, "-c", LOCKS_AND_STANDS_STILL, database_url],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    yield process
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    process.stdout.close()


def is_free(database: Database) -> bool:
    """Whether the rows can be locked now, or within the time that a lock is waited for."""
    with suppress(psycopg.errors.LockNotAvailable), database.connection() as connection:
        connection.execute("SELECT 1 FROM notice FOR UPDATE")
        return True
    return False


@pytest.mark.usefixtures("frozen")
def test_p9_the_rows_of_a_process_that_stands_still_are_free_after_ten_seconds(
    database: Database,
) -> None:
    began = time.monotonic()
    with pytest.raises(psycopg.errors.LockNotAvailable), database.connection() as connection:
        connection.execute("SELECT 1 FROM notice FOR UPDATE NOWAIT")

    while not is_free(database):
        assert time.monotonic() - began < 10 + SLOW_MACHINE_S
