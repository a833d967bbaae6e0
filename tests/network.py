"""Keeps the test process on this machine."""

from __future__ import annotations

import ipaddress
import sys

LOCAL_NAMES = {None, "", "localhost"}


class LeftTheMachine(BaseException):
    """A test reached for the network. No `except Exception` can hide it."""


def keep_to_loopback() -> None:
    """Refuse every Python socket that connects, sends or looks a name up beyond loopback.

    An audit hook sees what any library does and cannot be undone; C libraries with sockets of
    their own (libpq, Chromium) are not seen.
    """
    sys.addaudithook(refuse_the_rest)


def refuse_the_rest(event: str, arguments: tuple[object, ...]) -> None:
    """The hook: raises `LeftTheMachine` from within the forbidden call."""
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
        if isinstance(address, tuple) and not is_local(address[0]):
            raise LeftTheMachine(f"{event} to {address[0]}")
    elif event == "socket.getaddrinfo" and not is_local(arguments[0]):
        raise LeftTheMachine(f"look-up of {arguments[0]!r}")


def is_local(host: object) -> bool:
    """Whether this is loopback, by name or by number. Names are not resolved."""
    text = host.decode() if isinstance(host, bytes) else host
    if text in LOCAL_NAMES:
        return True
    try:
        address = ipaddress.ip_address(str(text).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
