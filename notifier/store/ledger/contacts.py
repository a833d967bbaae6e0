"""Stores what is kept of a destination: mask and keyed fingerprint, erasable by themselves."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import psycopg

Row = dict[str, Any]

KEEP: Final = """
INSERT INTO contact (notice_id, channel, mask, fingerprint, source, learnt_at)
VALUES (%(notice_id)s, %(channel)s, %(mask)s, %(fingerprint)s, 'link', db_now())
ON CONFLICT (notice_id, channel) DO UPDATE
   SET mask = excluded.mask, fingerprint = excluded.fingerprint, source = excluded.source,
       learnt_at = excluded.learnt_at
"""
FINGERPRINT: Final = """
SELECT fingerprint FROM contact WHERE notice_id = %(notice_id)s AND channel = %(channel)s
"""


def keep(
    connection: psycopg.Connection[Row],
    *,
    notice_id: UUID,
    channel: str,
    mask: str,
    fingerprint: bytes,
) -> None:
    """Keep the newest destination's mask and fingerprint for one channel of a notice."""
    connection.execute(
        KEEP,
        {"notice_id": notice_id, "channel": channel, "mask": mask, "fingerprint": fingerprint},
        prepare=True,
    )


def fingerprint_of(
    connection: psycopg.Connection[Row], notice_id: UUID, channel: str
) -> bytes | None:
    """The fingerprint that is kept for a channel of a notice, None where there is none."""
    row = connection.execute(
        FINGERPRINT, {"notice_id": notice_id, "channel": channel}, prepare=True
    ).fetchone()
    return row["fingerprint"] if row else None
