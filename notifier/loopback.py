"""Which hosts are this machine: what may go unencrypted goes there alone."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether `host` (a name or a literal address, brackets allowed) is this machine.

    DNS is not asked: what a name leads to is decided by others.
    """
    bare = host.strip("[]").lower()
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False
