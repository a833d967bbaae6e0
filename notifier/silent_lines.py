"""Cuts connections on which nothing has moved for a while, whichever side was to move.

The HTTP server has a limit for the head of a request and none for what follows, so a sender who
announces a body and stops, or a reader who takes no more of an answer, would keep his connection
and a thread for as long as he likes. The kernel knows how long nothing has come or gone. Linux
alone says so; elsewhere a proxy has to see to it.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from notifier.logs import fault_fields, log

SILENT_S: Final = 30.0
"""As long as the HTTP server gives the head of a request; no answer of ours takes so long."""

LOOK_EVERY_S: Final = 5.0

_DESCRIPTORS: Final = Path("/proc/self/fd")
_INFO_SIZE: Final = 60
_LAST_SENT: Final = 44
_LAST_RECEIVED: Final = 52
"""Places of two milliseconds' counts in `struct tcp_info` (linux/tcp.h); those do not move."""


def watch(port: int) -> None:
    """Cut silent connections to `port` of this process from now on, in a thread of its own."""
    if sys.platform == "linux":
        threading.Thread(target=_watch, args=(port,), name="silent-lines", daemon=True).start()


def _watch(port: int) -> NoReturn:
    while True:
        time.sleep(LOOK_EVERY_S)
        try:
            if cut := cut_silent(port, SILENT_S):
                log.info("silent_lines_cut", count=cut)
        except Exception as error:  # noqa: BLE001 - the next look may go well
            log.warning("silent_lines_unseen", **fault_fields(error))


def cut_silent(port: int, silent_s: float) -> int:
    """End each connection to `port` on which nothing moved for `silent_s` seconds; how many."""
    cut = 0
    for line in _taken_at(port):
        with line, suppress(OSError):  # whoever has gone by himself is gone
            if silent_for(line) >= silent_s:
                line.shutdown(socket.SHUT_RDWR)
                cut += 1
    return cut


def silent_for(line: socket.socket) -> float:
    """Seconds since data last came or went on a TCP connection."""
    info = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
    sent, received = (struct.unpack_from("=I", info, at)[0] for at in (_LAST_SENT, _LAST_RECEIVED))
    return float(min(sent, received)) / 1000


def _taken_at(port: int) -> Iterator[socket.socket]:
    """The connections that others opened to `port`, each as a copy that is the caller's to close.

    The server's own descriptors are not ours: one may end, and its number be given to another,
    at any moment. A copy keeps to the connection that it was made of.
    """
    for each in list(_DESCRIPTORS.iterdir()):
        line = _copy_of(int(each.name))
        if line is not None:
            if _is_taken_at(line, port):
                yield line
            else:
                line.close()


def _copy_of(descriptor: int) -> socket.socket | None:
    try:
        copy = os.dup(descriptor)
    except OSError:
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:  # no socket
        os.close(copy)
        return None


def _is_taken_at(line: socket.socket, port: int) -> bool:
    if line.family not in {socket.AF_INET, socket.AF_INET6} or line.type != socket.SOCK_STREAM:
        return False
    try:
        line.getpeername()
        return bool(line.getsockname()[1] == port)
    except OSError:  # it listens, or has ended
        return False
