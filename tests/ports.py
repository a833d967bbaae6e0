"""Ports for processes that listen on a port they are told.

Such a port is chosen before the process binds it. One from the range that the system hands out
by itself may go to somebody else's socket in between, whose answers then look like the
process's own; below that range only another choice made here could, and each is drawn at random.
"""

from __future__ import annotations

import random
import socket

LOWEST, HIGHEST = 10_000, 32_000
TRIES = 50
_draw = random.SystemRandom()


def port_to_bind() -> int:
    """A loopback port that is free now and that no socket gets without asking for it."""
    for _ in range(TRIES):
        port = _draw.randint(LOWEST, HIGHEST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    message = f"no free port between {LOWEST} and {HIGHEST}"
    raise RuntimeError(message)
