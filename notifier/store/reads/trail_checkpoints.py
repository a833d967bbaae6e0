"""The newest checkpoint: what changed after it is not protected yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import psycopg

NEWEST: Final = """
SELECT number, made_at, head_count, key_id,
       extract(epoch FROM db_now() - made_at)::float8 AS age_s
  FROM checkpoint ORDER BY number DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class NewestCheckpoint:
    """`age_s`: seconds by the database clock; `head_count`: chains that it covers."""

    number: int
    made_at: datetime
    head_count: int
    key_id: str
    age_s: float


def newest(connection: psycopg.Connection[dict[str, Any]]) -> NewestCheckpoint | None:
    """The last one made; None where there never was one."""
    row = connection.execute(NEWEST).fetchone()
    return NewestCheckpoint(**row) if row else None
