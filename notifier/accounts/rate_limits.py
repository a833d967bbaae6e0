"""Counts per window in Postgres, so that a limit holds over all processes.

Signing in is limited by name and network together: whoever guesses at a colleague's name runs
into a limit of his own and does not lock that colleague out. The cap per name alone is so wide
that it takes many networks to reach it; it bounds what those could guess together.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `hits` in each window of this length."""

    what: str
    hits: int
    window: timedelta


SIGN_IN_BY_ADDRESS: Final = Limit("sign_in_address", 60, timedelta(minutes=5))
SIGN_IN_BY_PAIR: Final = Limit("sign_in_pair", 10, timedelta(minutes=5))
SIGN_IN_BY_NAME: Final = Limit("sign_in_name", 300, timedelta(minutes=5))
IPV6_NETWORK: Final = 64
"""Bits of an IPv6 address that tell one customer from another; the rest are his to choose."""
LOOK_UPS: Final = Limit("look_up", 30, timedelta(minutes=1))
DESTINATION_SEARCHES: Final = Limit("destination_search", 5, timedelta(minutes=1))
EXPORTS: Final = Limit("export", 3, timedelta(hours=1))


class TooMany(Exception):
    """The limit is reached; `wait_s` whole seconds until the window ends."""

    def __init__(self, what: str, wait_s: int) -> None:
        super().__init__(what)
        self.what = what
        self.wait_s = wait_s


def count_sign_in(connection: PooledConnection, name: str, address: str | None) -> None:
    """Count a try to sign in before it is looked at. Raises `TooMany`.

    The narrowest limits come first: what they refuse does not count against the name.
    """
    for limit, whose in _sign_in(name, address):
        count(connection, limit, whose)


def forgive_sign_in(connection: PooledConnection, name: str, address: str | None) -> None:
    """Take a try off again that turned out well."""
    for limit, whose in _sign_in(name, address):
        give_back(connection, limit, whose)


def network_of(address: str | None) -> str:
    """Who an address stands for; one word for all that cannot be read."""
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return "nobody"
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), IPV6_NETWORK), strict=False))


def _sign_in(name: str, address: str | None) -> tuple[tuple[Limit, str], ...]:
    network = network_of(address)
    return (
        (SIGN_IN_BY_ADDRESS, network),
        (SIGN_IN_BY_PAIR, f"{network} {name}"),
        (SIGN_IN_BY_NAME, name),
    )


def count(connection: PooledConnection, limit: Limit, whose: str) -> None:
    """Count one hit, kept under a digest of `whose`. Raises `TooMany` beyond the limit."""
    row = connection.execute(
        """
        INSERT INTO rate_window (name, window_at, hits)
        SELECT %(name)s, date_bin(%(window)s, db_now(), 'epoch'::timestamptz), 1
        ON CONFLICT (name, window_at) DO UPDATE SET hits = rate_window.hits + 1
        RETURNING hits, extract(epoch FROM window_at + %(window)s - db_now()) AS left_s
        """,
        {"name": _name(limit, whose), "window": limit.window},
    ).fetchone()
    if row is not None and row["hits"] > limit.hits:
        raise TooMany(limit.what, max(1, math.ceil(row["left_s"])))


def give_back(connection: PooledConnection, limit: Limit, whose: str) -> None:
    """Take one hit off again: counted before the work, forgiven when it turned out well."""
    connection.execute(
        """
        UPDATE rate_window SET hits = hits - 1
         WHERE name = %(name)s AND hits > 0
           AND window_at = date_bin(%(window)s, db_now(), 'epoch'::timestamptz)
        """,
        {"name": _name(limit, whose), "window": limit.window},
    )


def _name(limit: Limit, whose: str) -> str:
    return f"{limit.what}:{hashlib.sha256(whose.encode()).hexdigest()[:32]}"
