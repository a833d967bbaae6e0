"""Sessions on our side: the browser holds a random token, we hold its digest.

A session ends after 30 minutes without a page asked for by the person (polls do not count),
after 10 hours in any case, when the person signs out, gets a new password or comes back from the
issuer with another role, and when the account is disabled.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from notifier.accounts.permissions import Permission, Role, may

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

IDLE: Final = timedelta(minutes=30)
ABSOLUTE: Final = timedelta(hours=10)
TOUCH_EVERY: Final = timedelta(seconds=60)
"""How stale `seen_at` may grow before a page view is written down."""


@dataclass(frozen=True, slots=True)
class Ways:
    """Who may have a session at all: local accounts, people of this issuer, or both."""

    local: bool = True
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who is asking, as the database says now. `session_digest` names the session."""

    person_id: UUID
    name: str
    role: Role
    session_digest: bytes
    from_issuer: bool = False

    def may(self, permission: Permission) -> bool:
        """Whether this person's present role carries the permission."""
        return may(self.role, permission)


_LOCAL: Final = Ways()


def digest_of(token: str) -> bytes:
    """The form in which a token is kept."""
    return hashlib.sha256(token.encode()).digest()


def begin(connection: PooledConnection, person_id: UUID, role: Role | None = None) -> str:
    """Open a session and return its token, which is stored nowhere.

    `role` is what the issuer said of a person of its own, and holds until the session ends;
    without one the account's role is read at each request.
    """
    token = secrets.token_urlsafe(32)
    connection.execute(
        """
        INSERT INTO session (token_digest, person_id, role, created_at, seen_at, expires_at)
        SELECT %s, %s, %s, clock.now, clock.now, clock.now + %s
          FROM (SELECT db_now() AS now) AS clock
        """,
        [digest_of(token), person_id, role, ABSOLUTE],
    )
    return token


def visitor(
    connection: PooledConnection, token: str, *, extend: bool, ways: Ways = _LOCAL
) -> Visitor | None:
    """The person behind a token, or None once the session is over.

    `extend` notes that the person asked for something; a poll passes False. A session of a way
    that is no longer open counts for nothing.
    """
    digest = digest_of(token)
    row = connection.execute(
        """
        SELECT person.person_id, person.name, coalesce(session.role, person.role) AS role,
               person.source = 'oidc' AS from_issuer,
               session.seen_at < clock.now - %(touch)s AS stale
          FROM session
          JOIN person USING (person_id)
          CROSS JOIN (SELECT db_now() AS now) AS clock
         WHERE session.token_digest = %(digest)s
           AND session.ended_at IS NULL
           AND session.expires_at > clock.now
           AND session.seen_at > clock.now - %(idle)s
           AND person.disabled_at IS NULL
           AND CASE person.source WHEN 'local' THEN %(local)s ELSE person.issuer = %(issuer)s END
        """,
        {
            "digest": digest,
            "idle": IDLE,
            "touch": TOUCH_EVERY,
            "local": ways.local,
            "issuer": ways.issuer,
        },
    ).fetchone()
    if row is None:
        return None
    if extend and row["stale"]:
        connection.execute(
            "UPDATE session SET seen_at = db_now() WHERE token_digest = %s", [digest]
        )
    return Visitor(row["person_id"], row["name"], Role(row["role"]), digest, row["from_issuer"])


def end(connection: PooledConnection, session_digest: bytes) -> None:
    """Close one session at once."""
    connection.execute(
        "UPDATE session SET ended_at = db_now() WHERE token_digest = %s AND ended_at IS NULL",
        [session_digest],
    )


def end_all(connection: PooledConnection, person_id: UUID) -> None:
    """Close every session of a person at once, for whoever has one may hold it wrongly."""
    connection.execute(
        "UPDATE session SET ended_at = db_now() WHERE person_id = %s AND ended_at IS NULL",
        [person_id],
    )


def end_of_other_roles(connection: PooledConnection, person_id: UUID, role: Role) -> None:
    """Close the sessions in which the issuer said another role of the person than it says now."""
    connection.execute(
        """
        UPDATE session SET ended_at = db_now()
         WHERE person_id = %s AND role <> %s AND ended_at IS NULL
        """,
        [person_id, role],
    )
