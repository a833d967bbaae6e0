"""Remembers the source of each template revision: the same revision never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg

Row = dict[str, Any]

STORED: Final = """
SELECT template_id, revision, encode(source_digest, 'hex') AS digest FROM template_revision
"""
KEEP: Final = """
INSERT INTO template_revision (template_id, revision, source_digest, first_seen)
VALUES (%(template_id)s, %(revision)s, decode(%(digest)s, 'hex'), db_now())
ON CONFLICT DO NOTHING
"""


def stored(connection: psycopg.Connection[Row]) -> dict[tuple[str, str], str]:
    """The SHA-256 (hex) of every revision's source that was ever started with."""
    rows = connection.execute(STORED)
    return {(row["template_id"], row["revision"]): row["digest"] for row in rows}


def keep(connection: psycopg.Connection[Row], digests: Mapping[tuple[str, str], str]) -> None:
    """Remember revisions that are new."""
    for (template_id, revision), digest in digests.items():
        values = {"template_id": template_id, "revision": revision, "digest": digest}
        connection.execute(KEEP, values)
