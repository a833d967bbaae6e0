"""A process that leads, for tests that freeze it: says `gain <term>` and `loss`."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from notifier.store.database import Database
from notifier.sweeps.leader import Leader
from notifier.sweeps.processes import owner_name


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    url, ttl = sys.argv[1:]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    database = Database(url, search_path="test_clock,notifier")
    leader = Leader(database, owner_name(), float(ttl), poll=0.2)
    leader.run(
        lambda: say(f"gain {leader.epoch}"),
        lambda: say("loss"),
        stop,
    )
    database.close()


main()
