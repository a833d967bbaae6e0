"""One-time sign-in links, for a first sign-in without a password.

Looking at a link uses nothing up, so that a mail scanner or a preview cannot spend it; only
pressing the page's button does.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from notifier.accounts.sessions import digest_of

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

LIFE: Final = timedelta(hours=24)


def create(connection: PooledConnection, person_id: UUID) -> str:
    """A fresh token for `/login/link/<token>`; earlier unused ones of the person end."""
    token = secrets.token_urlsafe(24)
    connection.execute(
        """
        WITH clock AS (SELECT db_now() AS now),
        earlier AS (
            UPDATE sign_in_link SET used_at = clock.now FROM clock
             WHERE person_id = %(person)s AND used_at IS NULL)
        INSERT INTO sign_in_link (token_digest, person_id, created_at, expires_at)
        SELECT %(digest)s, %(person)s, clock.now, clock.now + %(life)s FROM clock
        """,
        {"person": person_id, "digest": digest_of(token), "life": LIFE},
    )
    return token


def owner(connection: PooledConnection, token: str) -> str | None:
    """The name of the person whom a live link lets in, or None."""
    row = connection.execute(
        """
        SELECT person.name
          FROM sign_in_link JOIN person USING (person_id)
         WHERE token_digest = %s AND used_at IS NULL AND expires_at > db_now()
           AND person.disabled_at IS NULL AND person.source = 'local'
        """,
        [digest_of(token)],
    ).fetchone()
    return str(row["name"]) if row else None


def use(connection: PooledConnection, token: str) -> UUID | None:
    """Spend the link and return the person, or None; of two racing uses one wins."""
    row = connection.execute(
        """
        UPDATE sign_in_link SET used_at = db_now()
          FROM person
         WHERE person.person_id = sign_in_link.person_id AND person.disabled_at IS NULL
           AND person.source = 'local'
           AND token_digest = %s AND used_at IS NULL AND expires_at > db_now()
        RETURNING sign_in_link.person_id
        """,
        [digest_of(token)],
    ).fetchone()
    if row is None:
        return None
    person_id: UUID = row["person_id"]
    return person_id
