"""Accounts: the people who may sign in, and the roles of the local ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from uuid_utils.compat import uuid7

from notifier.accounts import passwords, sessions
from notifier.accounts.permissions import Role

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class NameTaken(ValueError):
    """An account of this name exists."""


class NameUnfit(ValueError):
    """The name holds something other than letters, digits and `. _ @ -`."""


class NobodyOfThatName(ValueError):
    """There is no such account."""


@dataclass(frozen=True, slots=True)
class Person:
    """One account. `disabled_at` is set once it may no longer sign in."""

    person_id: UUID
    name: str
    role: Role
    created_at: datetime
    disabled_at: datetime | None
    has_password: bool
    source: str
    """`local`, or `oidc` for somebody who comes from the issuer and has no password here."""


_COLUMNS = """person_id, name, role, created_at, disabled_at,
              password_hash IS NOT NULL AS has_password, source"""


def _person(row: dict[str, object]) -> Person:
    return Person(**{**row, "role": Role(str(row["role"]))})  # type: ignore[arg-type]


def add(connection: PooledConnection, name: str, role: Role, password: str | None) -> Person:
    """Create an account; without a password only a one-time link lets the person in.

    Raises `NameUnfit`, `NameTaken`, `passwords.PasswordUnfit`.
    """
    if not NAME_PATTERN.fullmatch(name):
        message = "a name has 1 to 64 letters, digits and . _ @ -"
        raise NameUnfit(message)
    hashed = None if password is None else passwords.hash_password(password)
    row = connection.execute(
        f"""
        INSERT INTO person (person_id, name, role, password_hash, source, created_at)
        VALUES (%s, %s, %s, %s, 'local', db_now())
        ON CONFLICT (name) DO NOTHING
        RETURNING {_COLUMNS}
        """,  # noqa: S608 - a constant of this file
        [uuid7(), name, role, hashed],
    ).fetchone()
    if row is None:
        message = f"there is an account named {name}"
        raise NameTaken(message)
    return _person(row)


def everybody(connection: PooledConnection) -> list[Person]:
    """Every account, by name."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM person ORDER BY name"  # noqa: S608 - a constant of this file
    )
    return [_person(row) for row in rows]


def named(connection: PooledConnection, name: str) -> Person:
    """The account of this name. Raises `NobodyOfThatName`."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM person WHERE name = %s",  # noqa: S608 - a constant of this file
        [name],
    ).fetchone()
    if row is None:
        message = f"there is no account named {name}"
        raise NobodyOfThatName(message)
    return _person(row)


def disable(connection: PooledConnection, name: str) -> None:
    """Shut the account; its sessions end with their next request. Raises `NobodyOfThatName`."""
    changed = connection.execute(
        "UPDATE person SET disabled_at = coalesce(disabled_at, db_now()) WHERE name = %s", [name]
    )
    if changed.rowcount == 0:
        message = f"there is no account named {name}"
        raise NobodyOfThatName(message)


def set_password(connection: PooledConnection, person_id: UUID, password: str) -> None:
    """Replace the password; every session of the person ends. Raises `passwords.PasswordUnfit`."""
    connection.execute(
        "UPDATE person SET password_hash = %s WHERE person_id = %s",
        [passwords.hash_password(password), person_id],
    )
    sessions.end_all(connection, person_id)


def who_signs_in(connection: PooledConnection, name: str, password: str) -> UUID | None:
    """The person with this name and password, or None; takes as long for a name nobody has."""
    sound = NAME_PATTERN.fullmatch(name) is not None
    row = None
    if sound:
        row = connection.execute(
            "SELECT person_id, password_hash FROM person"
            " WHERE name = %s AND disabled_at IS NULL AND source = 'local'",
            [name],
        ).fetchone()
    stored: str | None = row["password_hash"] if row else None
    if not passwords.matches(stored, password) or row is None or stored is None:
        return None
    person_id: UUID = row["person_id"]
    if passwords.is_outdated(stored):
        # Of the same password; a new one that came meanwhile stays.
        connection.execute(
            "UPDATE person SET password_hash = %s WHERE person_id = %s AND password_hash = %s",
            [passwords.hash_password(password), person_id, stored],
        )
    return person_id
