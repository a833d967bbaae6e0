"""Finds the PgBouncer that a test puts in front of Postgres, and installs Debian's if allowed."""

from __future__ import annotations

import os
import shutil
import sys

from setup.debian import install

PACKAGES = ("pgbouncer",)
FOLDERS = os.pathsep.join(("/usr/sbin", "/usr/local/sbin", os.defpath))
"""It is a server's program: Debian puts it where only root's PATH leads."""


def find_pooler() -> str | None:
    """The path of a PgBouncer: the variable PGBOUNCER, else the first on the PATH."""
    named = os.environ.get("PGBOUNCER")
    if named:
        return shutil.which(named)
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path=FOLDERS)


def main() -> int:
    """0 when there is a pooler, else 1 and what to do."""
    if find_pooler() or install("PgBouncer for the tests behind it", PACKAGES, find_pooler):
        return 0
    sys.stderr.write(
        "One test puts PgBouncer in front of Postgres and found none. Install it (on Debian: "
        "apt-get install pgbouncer), or set PGBOUNCER to the path of one, and run this again.\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
