"""Stores which help-desk ticket a notice belongs to."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import psycopg

Row = dict[str, Any]

LINK: Final = """
INSERT INTO ticket_link (ticket_id, notice_id, linked_at, linked_by)
VALUES (%(ticket_id)s, %(notice_id)s, db_now(), %(by)s)
ON CONFLICT DO NOTHING
RETURNING ticket_id
"""


def link(connection: psycopg.Connection[Row], ticket_id: str, notice_id: UUID, by: str) -> bool:
    """Link a ticket to a notice; whether it was not linked before."""
    values = {"ticket_id": ticket_id, "notice_id": notice_id, "by": by}
    return connection.execute(LINK, values).fetchone() is not None
