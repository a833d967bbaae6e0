"""Stores policy revisions: append-only, numbered from one without a gap."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import psycopg

Row = dict[str, Any]

# The number is part of the statement: of two processes that open an empty database at once,
# one inserts and the other finds it done.
BEGIN: Final = """
INSERT INTO policy_revision (revision, document, digest, author, reason, created_at)
SELECT 1, %(document)s::jsonb, decode(%(digest)s, 'hex'), %(author)s, 'first revision', db_now()
 WHERE NOT EXISTS (SELECT FROM policy_revision)
ON CONFLICT (revision) DO NOTHING
"""
# The number is the one after that which the author saw: of two who saw the same, one is late.
APPEND: Final = """
INSERT INTO policy_revision (revision, document, digest, author, reason, created_at)
SELECT %(base)s + 1, %(document)s::jsonb, decode(%(digest)s, 'hex'), %(author)s, %(reason)s,
       db_now()
 WHERE (SELECT max(revision) FROM policy_revision) = %(base)s
ON CONFLICT (revision) DO NOTHING
RETURNING revision
"""
IS_THAT: Final = """
SELECT FROM policy_revision
 WHERE revision = %(base)s + 1 AND digest = decode(%(digest)s, 'hex') AND author = %(author)s
   AND reason = %(reason)s
"""
NEWEST: Final = "SELECT max(revision) AS revision FROM policy_revision"
DOCUMENT: Final = "SELECT document FROM policy_revision WHERE revision = %(revision)s"


def begin(
    connection: psycopg.Connection[Row], document: Mapping[str, Any], digest: str, author: str
) -> None:
    """Store the first revision unless there is one."""
    values = {"document": json.dumps(document), "digest": digest, "author": author}
    connection.execute(BEGIN, values)


def append(
    connection: psycopg.Connection[Row],
    *,
    base: int,
    document: Mapping[str, Any],
    digest: str,
    author: str,
    reason: str,
) -> bool:
    """Store the revision after `base`; False where that one is there and is somebody else's.

    The same form sent twice is one revision.
    """
    values = {
        "base": base, "document": json.dumps(document), "digest": digest, "author": author,
        "reason": reason,
    }  # fmt: skip
    if connection.execute(APPEND, values).fetchone() is not None:
        return True
    return connection.execute(IS_THAT, values).fetchone() is not None


def newest(connection: psycopg.Connection[Row]) -> int:
    """The number of the revision in force; LookupError where the shelf is empty."""
    row = connection.execute(NEWEST).fetchone()
    if row is None or row["revision"] is None:
        message = "no policy revision is stored"
        raise LookupError(message)
    number: int = row["revision"]
    return number


def document_of(connection: psycopg.Connection[Row], revision: int) -> dict[str, Any]:
    """The values of one revision; KeyError where there is none."""
    row = connection.execute(DOCUMENT, {"revision": revision}).fetchone()
    if row is None:
        raise KeyError(revision)
    document: dict[str, Any] = row["document"]
    return document
