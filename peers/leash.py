"""Runs a command that is told to end (SIGTERM) when the process that started it dies.

    python peers/leash.py PARENT_PID COMMAND...

The kernel's parent-death signal (Linux, prctl(2)) follows the *thread* that forked, and
survives exec. Setting it here, in a fresh process, instead of between fork and exec keeps the
starter free to have threads; its main thread must do the starting.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Set the signal, make sure that the parent is still there, become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before the signal was set
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - that is the purpose


if __name__ == "__main__":
    main()
