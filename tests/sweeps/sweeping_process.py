"""A process that runs a host whose one sweep prints when it ran, for tests that freeze it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path

import psycopg
from psycopg.rows import DictRow

sys.path.insert(0, str(Path(__file__).parents[2]))

from notifier.store.database import Database
from notifier.sweeps.host import SweepHost


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say_so(connection: psycopg.Connection[DictRow]) -> int:
    connection.execute("SELECT 1")
    say(str(time.monotonic()))
    return 0


def main() -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    database = Database(sys.argv[1], search_path="test_clock,notifier")
    host = SweepHost(
        database, workers=1, version="x", bodies={"expiry": say_so}, period_of=lambda _: 0.2
    )
    host.start()
    stop.wait()
    host.stop()
    database.close()


main()
