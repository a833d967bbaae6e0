"""Passwords of local accounts: Argon2id with the library's current parameters (RFC 9106)."""

from __future__ import annotations

from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

SHORTEST: Final = 12
LONGEST: Final = 256
"""Characters. The upper bound keeps the hash from being made to work for an attacker."""

_hasher = PasswordHasher()
_NOBODY = _hasher.hash("a password that nobody has")


class PasswordUnfit(ValueError):
    """Too short or too long; the message says which, never the password."""


def hash_password(password: str) -> str:
    """The encoded hash. Raises `PasswordUnfit`."""
    if len(password) < SHORTEST:
        message = f"a password has at least {SHORTEST} characters"
        raise PasswordUnfit(message)
    if len(password) > LONGEST:
        message = f"a password has at most {LONGEST} characters"
        raise PasswordUnfit(message)
    return _hasher.hash(password)


def matches(stored: str | None, password: str) -> bool:
    """Whether this is the password; without an account it takes as long and says no."""
    if len(password) > LONGEST:
        return False
    try:
        _hasher.verify(stored or _NOBODY, password)
    except (Argon2Error, InvalidHashError):
        return False
    return stored is not None


def is_outdated(stored: str) -> bool:
    """Whether the hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(stored)
