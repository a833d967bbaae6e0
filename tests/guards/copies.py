"""Copies of the checkout in which guards are broken, and the runs of tests in them."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from notifier.store.embedded import ensure_running
from tests.database import FAST, FOLDER_VARIABLE, make_folder
from tests.guards.guard import Guard

ROOT: Final = Path(__file__).resolve().parents[2]
WARM: Final = Path(__file__).with_name("warm_pytest.py")
LIMIT_S: Final = 180.0
EACH_S: Final = 10.0
"""A run of tests may take the limit and this much for each of them (seconds)."""
END_S: Final = 30.0
OURS: Final = ("PYTEST_", "TESTS_", "COVERAGE_", "COV_")
"""Variables of a test run that may be going on around this one."""


@dataclass(frozen=True)
class Cases:
    """A test run, by how its cases ended."""

    passed: int
    failed: Sequence[str]
    broken: Sequence[str]


class WarmPytest:
    """Pytest in a process that has the libraries loaded; one run at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(WARM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def run(self, wish: dict[str, object], limit_s: float) -> bool:
        """Make one run; whether it ended in time. What takes longer is ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(wish).encode() + b"\n")
        child = self._answer(limit_s)
        assert child is not None
        if self._answer(limit_s) is not None:
            return True
        os.kill(child, signal.SIGINT)  # so that it stops its Postgres
        if self._answer(END_S) is None:
            os.kill(child, signal.SIGKILL)
            self._answer(END_S)
        return False

    def _answer(self, limit_s: float) -> int | None:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], limit_s)
        return int(self._process.stdout.readline()) if ready else None


class Copy:
    """A copy of the checkout's own files (tracked, and new ones that are not ignored).

    `server` is the folder of a Postgres that its runs share; without it each has its own.
    """

    def __init__(self, folder: Path, server: Path | None = None) -> None:
        self._folder = folder
        self._server = server
        self._pytest = WarmPytest()
        self._versions = count(1)
        for name in own_files():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)

    def close(self) -> None:
        """End what runs for it; the files stay."""
        self._pytest.close()

    @contextmanager
    def broken(self, guard: Guard) -> Iterator[None]:
        """The copy with one guard broken; whole again afterwards.

        Each version of a file has a time of its own, in whole seconds: by that and by its size
        Python knows whether what it has compiled is still the file's.
        """
        place = self._folder / guard.broken_by.path
        whole = place.read_bytes() if place.exists() else None
        written_at = int(place.stat().st_mtime) if place.exists() else 0
        try:
            guard.broken_by.apply(self._folder)
            os.utime(place, times=(written_at, written_at + next(self._versions)))
            yield
        finally:
            if whole is not None:  # not from the checkout: it may have gone on meanwhile
                place.write_bytes(whole)
                os.utime(place, times=(written_at, written_at))

    def run(self, tests: Sequence[str], *, schema_is_whole: bool = True) -> Cases:
        """Run tests in the copy."""
        report, told = self._folder / "report.xml", self._folder / "told.txt"
        report.unlink(missing_ok=True)
        wish: dict[str, object] = {
            "folder": str(self._folder),
            "arguments": ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests],
            "environment": self._environment(schema_is_whole=schema_is_whole),
            "told": str(told),
        }
        if not self._pytest.run(wish, LIMIT_S + EACH_S * len(tests)):
            return Cases(0, [], ["the test did not end in time"])
        return cases_of(report) if report.exists() else Cases(0, [], [told.read_text()[-300:]])

    def _environment(self, *, schema_is_whole: bool) -> dict[str, str]:
        plain = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        shared = self._server is not None and schema_is_whole
        return {**plain, FOLDER_VARIABLE: str(self._server)} if shared else plain


@contextmanager
def own_copy() -> Iterator[Copy]:
    """A copy with a Postgres that lasts as long as it does."""
    home = make_folder()
    server = ensure_running(home, settings=FAST)
    try:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            copy = Copy(Path(folder), home)
            try:
                yield copy
            finally:
                copy.close()
    finally:
        server.stop()
        shutil.rmtree(home)


def own_files() -> list[str]:
    """The checkout's own files, relative to its root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def cases_of(report: Path) -> Cases:
    """Failures in a test itself, apart from errors around it (collection, set-up)."""
    passed, failed, broken = 0, [], []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - written by our own child
        failure, error = case.find("failure"), case.find("error")
        if failure is not None:
            failed.append(first_line(failure))
        elif error is not None:
            broken.append(first_line(error))
        else:
            passed += 1
    return Cases(passed, failed, broken)


def first_line(element: ET.Element) -> str:
    """What a case said, in a line."""
    return (element.get("message") or "").strip().partition("\n")[0][:160]
