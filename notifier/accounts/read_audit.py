"""Who looked at what, and who did what. A row stands before the answer leaves: no row, no data.

A destination is never written down: its keyed fingerprint stands in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from uuid_utils.compat import uuid7

if TYPE_CHECKING:
    from notifier.accounts.sessions import Visitor
    from notifier.store.database import PooledConnection

REPEAT_AFTER: Final = timedelta(minutes=10)
"""A page that refreshes itself is written down again after this long, not at every tick."""

NOBODY: Final = "nobody"
"""Whoever signs in under a name that no account has: the name itself may be a slip."""

ANY_ROLE: Final = "none"


class Outcome(StrEnum):
    """What became of it. An act is written down as asked for, and again with its end."""

    SHOWN = "shown"
    REFUSED = "refused"
    """The role does not cover it, or name and password did not go together."""
    ASKED = "asked"
    DONE = "done"
    STALE = "stale"
    """The state had moved on since the form was made."""
    NOT_DONE = "not_done"


@dataclass(frozen=True, slots=True)
class Read:
    """One look: `action` (look_up, view, list), what kind of thing, which one, rows shown.

    `reason` is what the person gave for an act or an export: a sentence or a ticket.
    """

    action: str
    object_kind: str
    object_ref: str | None = None
    hits: int | None = None
    reason: str | None = None
    outcome: Outcome = Outcome.SHOWN


@dataclass(frozen=True, slots=True)
class Way:
    """How somebody comes in: `password`, `link` or `oidc`, and what is to be said of that."""

    how: str
    why: str | None = None


_RECORD = """
    INSERT INTO read_audit
        (read_id, at, person, role, action, object_kind, object_ref, hits, request_id, reason,
         outcome)
    SELECT %(read_id)s, db_now(), %(person)s, %(role)s, %(action)s, %(object_kind)s,
           %(object_ref)s, %(hits)s, %(request_id)s, %(reason)s, %(outcome)s
"""

_UNLESS_RECENT = """
     WHERE NOT EXISTS (
        SELECT FROM read_audit
         WHERE at > db_now() - %(repeat_after)s AND person = %(person)s
           AND action = %(action)s AND object_kind = %(object_kind)s
           AND object_ref IS NOT DISTINCT FROM %(object_ref)s::text)
"""


def record(
    connection: PooledConnection,
    visitor: Visitor,
    read: Read,
    request_id: str,
    *,
    refresh: bool = False,
) -> None:
    """Write the look down; a `refresh` only when the last one is older than `REPEAT_AFTER`."""
    connection.execute(
        _RECORD + _UNLESS_RECENT if refresh else _RECORD,
        _values(visitor.name, visitor.role, read, request_id) | {"repeat_after": REPEAT_AFTER},
    )


_WHO: Final = """
    SELECT name, role FROM person
     WHERE (%(name)s::text IS NULL OR name = %(name)s)
       AND (%(person_id)s::uuid IS NULL OR person_id = %(person_id)s)
"""


BESIDE_ISSUER: Final = "beside single sign-on"
"""Stands as the reason where a local account got somebody in although there is an issuer."""


def record_sign_in(
    connection: PooledConnection, who: UUID | str, outcome: Outcome, request_id: str, *, way: Way
) -> None:
    """Write down that somebody came in (by id), or that a name was refused; `way` says how."""
    key = {"name": None, "person_id": who} if isinstance(who, UUID) else {"name": who}
    row = connection.execute(_WHO, {"person_id": None, **key}).fetchone()
    name, role = (row["name"], row["role"]) if row else (NOBODY, ANY_ROLE)
    read = Read("sign_in", way.how, reason=way.why, outcome=outcome)
    connection.execute(_RECORD, _values(name, role, read, request_id))


def _values(person: str, role: str, read: Read, request_id: str) -> dict[str, Any]:
    return {
        "read_id": uuid7(),
        "person": person,
        "role": role,
        "action": read.action,
        "object_kind": read.object_kind,
        "object_ref": read.object_ref,
        "hits": read.hits,
        "request_id": request_id,
        "reason": read.reason,
        "outcome": read.outcome,
    }
