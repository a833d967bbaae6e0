"""`python -m tests.gamedays`: ten seeded quiet days of 24 virtual hours; none may alert."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from notifier.store.database import Database
from tests import database as databases
from tests.database import Clock
from tests.gamedays.quiet import QuietDay


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the days one after the other; the exit status is the number of days that alerted."""
    parser = argparse.ArgumentParser(prog="python -m tests.gamedays", description=__doc__)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=30.0, help="virtual seconds between looks")
    asked = parser.parse_args(arguments)
    databases.choose_folder()
    server = databases.run_server()
    try:
        databases.ensure_template(server)
        alerted = 0
        for seed in range(asked.first_seed, asked.first_seed + asked.days):
            with databases.fresh_database(server) as url:
                path = urlsplit(url).path
                owner = urlsplit(server.superuser_url)._replace(path=path).geturl()
                alerted += play(owner, seed, asked.every)
        return alerted
    finally:
        server.stop()
        databases.remove_server()


def play(url: str, seed: int, every_s: float) -> bool:
    """One day, told in a line; whether it alerted."""
    database = Database(url, search_path="test_clock,notifier")
    clock = Clock(url)
    began = time.monotonic()
    try:
        quiet = QuietDay(database, clock, seed, every_s)
        opened = quiet.play()
    finally:
        clock.close()
        database.close()
    took = time.monotonic() - began
    told = "; ".join(f"{row['rule']} {row['key']} {row['opened_at']:%H:%M}" for row in opened)
    print(  # noqa: T201 - a command's output
        f"seed {seed}: {len(quiet.day.lives)} notices, {quiet.looks} looks, {took:.0f} s: "
        f"{told or 'no alert'}",
        flush=True,
    )
    return bool(opened)


if __name__ == "__main__":
    sys.exit(main())
