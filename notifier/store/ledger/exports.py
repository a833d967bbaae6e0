"""Keeps exports: what was asked for, the result part by part, and its end.

A part and the place to go on from are written together, so whoever takes an export up after a
crash goes on where the last part ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

Row = dict[str, Any]

LEASE_S: Final = 60
MOST_TRIES: Final = 5
"""Turns without progress after which an export is given up."""
KEPT_H: Final = 24
"""Hours for which a result can be fetched."""

_COLUMNS: Final = """export_id, requested_by, role, requested_at, request_id, reason, what,
    parameters, words, format, masked, as_of, state, place, parts, rows, bytes AS size, tries,
    finished_at, expires_at, digest"""

BEGIN: Final = f"""
INSERT INTO export (export_id, requested_by, role, requested_at, request_id, reason, what,
                    parameters, words, format, reader_zone, masked, as_of, state, tries,
                    leased_until)
SELECT %(export_id)s, %(requested_by)s, %(role)s, clock.now, %(request_id)s, %(reason)s, %(what)s,
       %(parameters)s, %(words)s, %(format)s, %(reader_zone)s, %(masked)s, clock.now,
       'waiting', 1, clock.now + make_interval(secs => %(lease_s)s)
  FROM (SELECT db_now() AS now) AS clock
RETURNING {_COLUMNS}
"""

CLAIM: Final = f"""
WITH due AS MATERIALIZED (
    SELECT export_id FROM export
     WHERE state = 'waiting' AND coalesce(leased_until < db_now(), true)
     ORDER BY requested_at, export_id LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE export SET tries = tries + 1,
       leased_until = db_now() + make_interval(secs => %(lease_s)s)
 WHERE export_id = (SELECT export_id FROM due)
RETURNING {_COLUMNS}
"""

ADD_PART: Final = """
WITH grown AS (
    UPDATE export
       SET parts = parts + 1, rows = rows + %(rows)s, bytes = bytes + length(%(body)s),
           place = %(place)s, tries = 0,
           leased_until = db_now() + make_interval(secs => %(lease_s)s)
     WHERE export_id = %(export_id)s AND state = 'waiting' AND parts = %(parts)s
    RETURNING export_id)
INSERT INTO export_part (export_id, place, body)
SELECT export_id, %(parts)s, %(body)s FROM grown
"""

LET_GO: Final = """
UPDATE export SET leased_until = NULL WHERE export_id = %(export_id)s AND state = 'waiting'
"""

FINISH: Final = """
UPDATE export
   SET state = 'ready', digest = %(digest)s, finished_at = clock.now, leased_until = NULL,
       expires_at = clock.now + make_interval(hours => %(kept_h)s)
  FROM (SELECT db_now() AS now) AS clock
 WHERE export_id = %(export_id)s AND state = 'waiting'
"""

GIVE_UP: Final = """
UPDATE export SET state = 'failed', finished_at = db_now(), leased_until = NULL
 WHERE export_id = %(export_id)s AND state = 'waiting'
"""

START_OVER: Final = """
UPDATE export SET parts = 0, rows = 0, bytes = 0, place = NULL
 WHERE export_id = %(export_id)s AND state = 'waiting'
"""

ERASE: Final = """
WITH over AS (
    UPDATE export SET state = 'erased'
     WHERE export_id IN (SELECT export_id FROM export
                          WHERE state = 'ready' AND expires_at < db_now()
                          ORDER BY expires_at LIMIT 20)
    RETURNING export_id)
DELETE FROM export_part USING over WHERE export_part.export_id = over.export_id
"""

PART: Final = """
SELECT part.body, part.place + 1 = export.parts AS is_last
  FROM export_part AS part JOIN export USING (export_id)
 WHERE part.export_id = %(export_id)s AND part.place = %(place)s
"""


class PartMissing(Exception):
    """The export has no such part: it was erased, or never grew so far."""


@dataclass(frozen=True, slots=True)
class Export:
    """One export as it stands. `as_of` bounds what it holds; `place` is where it goes on."""

    export_id: UUID
    requested_by: str
    role: str
    requested_at: datetime
    request_id: str | None
    reason: str | None
    what: str
    parameters: Mapping[str, str]
    words: str
    format: str
    masked: list[str]
    as_of: datetime
    state: str
    place: Any
    parts: int
    rows: int
    size: int
    tries: int
    finished_at: datetime | None
    expires_at: datetime | None
    digest: bytes | None


def begin(connection: psycopg.Connection[Row], values: Mapping[str, Any]) -> Export:
    """Store what is asked for, held by the caller for `LEASE_S`."""
    given = {**values, "parameters": Jsonb(dict(values["parameters"])), "lease_s": LEASE_S}
    row = connection.execute(BEGIN, given).fetchone()
    assert row is not None  # noqa: S101 - an INSERT of one row returns it
    return Export(**row)


def claim(connection: psycopg.Connection[Row]) -> Export | None:
    """Take up the oldest export that nobody works on."""
    row = connection.execute(CLAIM, {"lease_s": LEASE_S}).fetchone()
    return Export(**row) if row else None


def add_part(
    connection: psycopg.Connection[Row],
    export: Export,
    *,
    parts: int,
    body: bytes,
    rows: int,
    place: Any,
) -> bool:
    """Append part number `parts`; False where somebody else has gone on with it."""
    values = {
        "export_id": export.export_id,
        "parts": parts,
        "body": body,
        "rows": rows,
        "place": Jsonb(place),
        "lease_s": LEASE_S,
    }
    return connection.execute(ADD_PART, values).rowcount == 1


def let_go(connection: psycopg.Connection[Row], export: Export) -> None:
    """Leave the rest to whoever claims it next."""
    connection.execute(LET_GO, {"export_id": export.export_id})


def finish(connection: psycopg.Connection[Row], export: Export) -> None:
    """Close it with the digest over all its parts."""
    digest = hashlib.sha256()
    place, is_last = 0, False
    while not is_last:
        body, is_last = part(connection, export.export_id, place)
        digest.update(body)
        place += 1
    values = {"export_id": export.export_id, "digest": digest.digest(), "kept_h": KEPT_H}
    connection.execute(FINISH, values)


def give_up(connection: psycopg.Connection[Row], export: Export) -> None:
    """It made no progress too often."""
    connection.execute(GIVE_UP, {"export_id": export.export_id})


def start_over(connection: psycopg.Connection[Row], export: Export) -> None:
    """Throw its parts away: a text that is written in one go cannot be gone on with."""
    with connection.transaction():
        connection.execute(START_OVER, {"export_id": export.export_id})
        connection.execute(
            "DELETE FROM export_part WHERE export_id = %(export_id)s",
            {"export_id": export.export_id},
        )


def erase(connection: psycopg.Connection[Row]) -> int:
    """Remove the results that are over their time; how many parts went."""
    return connection.execute(ERASE).rowcount


def part(connection: psycopg.Connection[Row], export_id: UUID, place: int) -> tuple[bytes, bool]:
    """The part with this number, counted from nought, and whether it is the last.

    Raises `PartMissing`.
    """
    row = connection.execute(PART, {"export_id": export_id, "place": place}).fetchone()
    if row is None:
        raise PartMissing
    return bytes(row["body"]), row["is_last"]
