"""Which event a signed cancel was for, kept for as long as its signature is good and longer."""

from __future__ import annotations

from typing import Any, Final

import psycopg

Row = dict[str, Any]

# The update changes nothing: it makes the row of whoever was first visible to the others.
CLAIM: Final = """
INSERT INTO signed_cancel AS c (signed_digest, event_id, seen_at)
VALUES (%(digest)s, %(event_id)s, db_now())
ON CONFLICT (signed_digest) DO UPDATE SET event_id = c.event_id
RETURNING event_id
"""


def event_of_message(connection: psycopg.Connection[Row], digest: bytes, event_id: str) -> str:
    """The event that this message was first used for; this one where it never was."""
    row = connection.execute(CLAIM, {"digest": digest, "event_id": event_id}).fetchone()
    assert row is not None  # noqa: S101 - an upsert returns its row
    first: str = row["event_id"]
    return first
