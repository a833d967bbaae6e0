"""What an operator's act is checked against: the place in the trail that the operator saw."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import psycopg

Row = dict[str, Any]

VERSION: Final = "SELECT seq FROM notice WHERE notice_id = %(notice_id)s"


def version(connection: psycopg.Connection[Row], notice_id: UUID) -> int | None:
    """The sequence of the notice's newest step; steady while its lock is held."""
    row = connection.execute(VERSION, {"notice_id": notice_id}).fetchone()
    return row["seq"] if row else None
