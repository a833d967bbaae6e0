"""Installs a Debian package where that is allowed: as root, with apt-get."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence


def install(
    what: str, packages: Sequence[str], found: Callable[[], object], *, beside: Sequence[str] = ()
) -> bool:
    """Try the packages in turn, each with those `beside` it, until `found` gives something.

    `what` is said while it lasts. Whether it is there afterwards.
    """
    apt = shutil.which("apt-get")
    if os.geteuid() != 0 or apt is None:
        return False
    sys.stdout.write(f"Installing {what}\n")
    sys.stdout.flush()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([apt, "-qq", "update"], check=False, env=environment)
    for package in packages:
        subprocess.run(
            [apt, "-qq", "-y", "--no-install-recommends", "install", package, *beside],
            check=False,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        if found():
            return True
    return False
