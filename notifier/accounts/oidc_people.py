"""Accounts of people who come from the issuer: made at their first sign-in, then kept.

A name is for reading. It is given once and belongs to one account, so that the audit never
mixes two people; who takes after an account that stands there gets a mark beside the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from uuid_utils.compat import uuid7

from notifier.accounts.oidc import Identity, Refusal, SignInRefused
from notifier.accounts.people import NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notifier.store.database import PooledConnection

LONGEST_NAME: Final = 64

_KNOWN: Final = """
    UPDATE person SET role = %(role)s
     WHERE issuer = %(issuer)s AND subject = %(subject)s AND source = 'oidc'
    RETURNING person_id, disabled_at
"""
_NEW: Final = """
    INSERT INTO person (person_id, name, role, source, issuer, subject, created_at)
    VALUES (%(id)s, %(name)s, %(role)s, 'oidc', %(issuer)s, %(subject)s, db_now())
    ON CONFLICT DO NOTHING
    RETURNING person_id
"""


def account_of(connection: PooledConnection, identity: Identity) -> UUID:
    """The person's account, made if there is none; it notes the role. Raises `SignInRefused`."""
    values = {
        "issuer": identity.issuer,
        "subject": identity.subject,
        "role": identity.role,
    }
    for name in _names(identity):
        # Asked again each time: a second sign-in of the same person may have been quicker.
        known = connection.execute(_KNOWN, values).fetchone()
        if known is not None:
            return _if_open(known)
        made = connection.execute(_NEW, {**values, "id": uuid7(), "name": name}).fetchone()
        if made is not None:
            return _id(made)
    known = connection.execute(_KNOWN, values).fetchone()
    if known is None:
        raise SignInRefused(Refusal.TOKEN, "name")
    return _if_open(known)


def _names(identity: Identity) -> Iterator[str]:
    """What the account may be called, best first."""
    marked = f"sso-{identity.mark}"
    wished = identity.name or ""
    if NAME_PATTERN.fullmatch(wished):
        yield wished
        yield f"{wished[: LONGEST_NAME - len(marked) - 1]}.{marked}"
    yield marked


def _if_open(row: dict[str, object]) -> UUID:
    if row["disabled_at"] is not None:
        raise SignInRefused(Refusal.SHUT)
    return _id(row)


def _id(row: dict[str, object]) -> UUID:
    found = row["person_id"]
    assert isinstance(found, UUID)  # noqa: S101 - the column's type
    return found
