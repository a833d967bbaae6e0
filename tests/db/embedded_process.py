"""One process that uses an embedded server, as the user it is told to be.

Run as `python embedded_process.py FOLDER PACKAGES UID`: says on standard output, as one line of
JSON, which server it reached; leaves in good order when its standard input ends. Everything is
imported before the user is changed, because that user need not be able to reach this Python.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import psycopg

from notifier.store.embedded import EmbeddedPostgresError, ensure_running


def main() -> int:
    folder, packages, uid = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    sys.path.insert(0, packages)
    if uid != os.geteuid():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    try:
        server = ensure_running(folder, settings={"fsync": "off"})
    except EmbeddedPostgresError as error:
        say({"refused": str(error)})
        return 1
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS visit (pid int)")
        connection.execute("INSERT INTO visit VALUES (%s)", [os.getpid()])
        row = connection.execute("SELECT count(*) FROM visit").fetchone()
    assert row is not None
    say({"server": server.pid, "url": server.url, "visits": row[0]})
    sys.stdin.read()
    server.stop()
    return 0


def say(word: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(word) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
