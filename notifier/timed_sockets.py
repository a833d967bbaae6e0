"""Time limits that bound the whole of a conversation, not each read of it.

A peer that answers one byte at a time renews every per-operation timeout; only a deadline
for the sum stops it. The same goes for a name with several dead addresses and for a name
server that does not answer, so opening a connection is done here too.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
import time
from typing import Any

_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


class Deadline:
    """A moment on this process's monotonic clock."""

    __slots__ = ("_at",)

    def __init__(self, at: float) -> None:
        self._at = at

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The moment `seconds` from now."""
        return cls(time.monotonic() + seconds)

    def sooner(self, seconds: float) -> Deadline:
        """`seconds` from now, or the deadline itself where that comes first."""
        return Deadline(min(self._at, time.monotonic() + seconds))

    def left(self) -> float:
        """The seconds left, always positive; raises TimeoutError when there are none."""
        seconds = self._at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds


def open_tcp(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first address of `host` that answers; OSError when none does in time.

    Each address gets an equal share of what is left, so that one that swallows packets does
    not use up the time of the next.
    """
    addresses = _resolve(host, port, deadline)
    trouble: OSError = OSError("no address")
    for position, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(deadline.left() / (len(addresses) - position))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            sock.close()
            trouble = error
        else:
            return sock
    raise trouble


def _resolve(host: str, port: int, deadline: Deadline) -> list[_Address]:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _look_up(host, port, deadline)
    return _ask_resolver(host, port, socket.AI_NUMERICHOST)


def _look_up(host: str, port: int, deadline: Deadline) -> list[_Address]:
    """Ask in a thread of its own: the C library's look-up can be bounded in no other way."""
    answer: queue.SimpleQueue[list[_Address] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answer.put(_ask_resolver(host, port))
        except (OSError, UnicodeError) as error:
            answer.put(error if isinstance(error, OSError) else OSError("unusable host name"))

    threading.Thread(target=ask, name="name-look-up", daemon=True).start()
    try:
        found = answer.get(timeout=deadline.left())
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(found, OSError):
        raise found
    return found


def _ask_resolver(host: str, port: int, flags: int = 0) -> list[_Address]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags))
