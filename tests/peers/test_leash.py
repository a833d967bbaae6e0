"""What the runner started does not outlive it, however it dies."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

from peers.app_process import LEASH

STARTER = """
import os, subprocess, sys, time
child = [sys.executable, "-c", "import sys; sys.stdout.write('here'); sys.stdout.flush();"
         "import signal; signal.pause()"]
leash = [sys.executable, "-I", sys.argv[1], str(os.getpid())]
subprocess.Popen(leash + child, start_new_session=True)
time.sleep(60)
"""


def ended(pipe: int) -> bool:
    """Whether every process that held the other end of `pipe` has gone, within ten seconds."""
    readable, _, _ = select.select([pipe], [], [], 10)
    return bool(readable) and os.read(pipe, 100) == b""


def test_a_child_ends_when_its_starter_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(LEASH)], stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        assert os.read(starter.stdout.fileno(), 4) == b"here"
        starter.send_signal(signal.SIGKILL)
        assert ended(starter.stdout.fileno())


def test_a_child_whose_starter_has_already_gone_does_not_begin() -> None:
    command = [sys.executable, "-I", str(LEASH), "1", sys.executable, "-c", "print('here')"]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
