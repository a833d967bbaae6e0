"""The app as a child process: started on a leash, watched until ready, ended in order."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
LEASH = ROOT / "peers" / "leash.py"
READY_WITHIN_S = 120.0
END_WITHIN_S = 20.0
COMMAND_WITHIN_S = 60.0
LAST_LINES = 30
SIGN_IN_LINK = re.compile(r"https?://\S+")


class NotStarted(Exception):
    """The app did not come up; the text says what it said."""


class AppProcess:
    """`python app.py` in `root` with the given settings; its output is added to `log`."""

    def __init__(
        self, settings: dict[str, str], base_url: str, log: Path, *, root: Path = ROOT
    ) -> None:
        self._root = root
        self._environment = os.environ | settings
        self._base_url, self._log = base_url, log
        self._said_before = 0
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, from the main thread (see `peers.leash`), in a session of its own.

        Ctrl-C in the terminal therefore reaches the runner alone, which ends the children in
        order.
        """
        leash = [sys.executable, "-I", str(LEASH), str(os.getpid())]
        with self._log.open("ab") as output:
            self._said_before = output.tell()
            self._child = self._popen([*leash, sys.executable, "app.py"], output)

    def _popen(self, command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self._root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait_until_ready(self, stop: threading.Event) -> None:
        """Return when /readyz says so or `stop` is set; NotStarted when it will not."""
        deadline, said = time.monotonic() + READY_WITHIN_S, "no answer"
        while not stop.is_set():
            ready, said = self._readiness()
            if ready:
                return
            if self.ended():
                raise NotStarted(self.last_words())
            if time.monotonic() > deadline:
                message = f"{self.last_words()}\nnot ready after {READY_WITHIN_S:g} s: {said}"
                raise NotStarted(message)
            stop.wait(0.2)

    def _readiness(self) -> tuple[bool, str]:
        try:
            with urllib.request.urlopen(f"{self._base_url}/readyz", timeout=5) as answer:  # noqa: S310
                return answer.status == 200, ""
        except urllib.error.HTTPError as error:
            with error:
                return False, error.read().decode(errors="replace")
        except OSError as error:
            return False, str(error)

    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._child is None or self._child.poll() is not None

    def last_words(self) -> str:
        """The end of what it printed since it was started."""
        said = self._log.read_bytes()[self._said_before :] if self._log.exists() else b""
        return "\n".join(said.decode(errors="replace").splitlines()[-LAST_LINES:])

    def sign_in_link(self, name: str, role: str) -> str:
        """Make an account, if there is none, and give a one-time sign-in link of it.

        Raises NotStarted with what was said. An earlier run may have left the account.
        """
        said = ""
        for command in (("add", name, "--role", role), ("link", name)):
            done = self._flask("users", *command)
            link = SIGN_IN_LINK.search(done.stdout)
            if done.returncode == 0 and link is not None:
                return f"{link[0]}  ({name})"
            said += done.stdout + done.stderr
        raise NotStarted(said)

    def _flask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [sys.executable, "-m", "flask", "--app", "app", *arguments],
                cwd=self._root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            message = f"flask {' '.join(arguments)} took more than {COMMAND_WITHIN_S:g} s"
            raise NotStarted(message) from None

    def close(self, within_s: float = END_WITHIN_S) -> None:
        """SIGTERM and wait; what does not end in time is killed, with all it started."""
        if self._child is None:
            return
        if self._child.poll() is None:
            self._child.terminate()
        try:
            self._child.wait(within_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
