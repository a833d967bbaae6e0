"""Runs one peer as a process of its own; used for benchmarks and by hand.

Prints one line of JSON with its addresses when it serves, and ends on SIGTERM, on Ctrl-C or
(if asked for) when its standard input is closed, so that it never outlives its starter.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from types import FrameType


class Peer(Protocol):
    """What can be served."""

    def start(self) -> None:
        """Begin."""

    def close(self) -> None:
        """End."""


def add_stop_option(parser: argparse.ArgumentParser) -> None:
    """The option for a peer that must not outlive whoever started it."""
    parser.add_argument("--stop-with-stdin", action="store_true")


def serve(peer: Peer, facts: dict[str, object], *, stop_with_stdin: bool) -> None:
    """Serve until told to end, having printed `facts`."""
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if stop_with_stdin:
        threading.Thread(target=_set_at_end_of_input, args=(stop,), daemon=True).start()
    peer.start()
    print(json.dumps(facts), flush=True)  # noqa: T201 - its one line of output
    stop.wait()
    peer.close()


def _set_at_end_of_input(stop: threading.Event) -> None:
    while sys.stdin.buffer.read(1):
        pass
    stop.set()
