"""The trail's chain, checked by code that knows only the rule.

The rule, as the schema states it: a row's hash is SHA-256 over the previous hash, followed by
the row's fields in their order, each as its length in bytes, a colon, its text and a comma; an
absent field is `-,`. Times are whole microseconds since 1970. The first previous hash is the
SHA-256 of the notice's id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = ("recorded_at", "occurred_at")
BEFORE = ("notice_id", "seq")
AFTER = (
    "event_id",
    "reset_request_id",
    "correlation_id",
    "channel",
    "attempt",
    "actor",
    "from_state",
    "to_state",
    "reason",
    "detail",
    "provider",
    "provider_ref",
    "receipt_id",
    "remaining_us",
    "template_revision",
    "policy_revision",
    "evidence",
)
ROWS = "SELECT *, evidence::text AS evidence FROM transition ORDER BY notice_id, seq"
HEADS = "SELECT notice_id, seq, head FROM notice"

Row = dict[str, Any]


class Broken(AssertionError):
    """The chain does not hold; says where."""


def field(value: object) -> bytes:
    if value is None:
        return b"-,"
    text = str(value).encode()
    return str(len(text)).encode() + b":" + text + b","


def microseconds(at: datetime) -> int:
    span = at - EPOCH
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def digest(previous: bytes, row: Row) -> bytes:
    values = [row[name] for name in BEFORE]
    values += [microseconds(row[name]) for name in TIMES]
    values += [row[name] for name in AFTER]
    return hashlib.sha256(previous + b"".join(map(field, values))).digest()


def verify(rows: Sequence[Row], heads: Sequence[Row]) -> int:
    """Raise `Broken` unless every notice's rows are one unbroken chain; how many rows."""
    ends: dict[object, tuple[int, bytes]] = {}
    for row in rows:
        notice_id = row["notice_id"]
        first = (0, hashlib.sha256(str(notice_id).encode()).digest())
        seq, previous = ends.get(notice_id, first)
        if (row["seq"], row["prev_hash"]) != (seq + 1, previous):
            raise Broken(f"row {row['seq']} of {notice_id} does not follow row {seq}")
        if row["hash"] != digest(previous, row):
            raise Broken(f"row {row['seq']} of {notice_id} is not what was written")
        ends[notice_id] = (row["seq"], row["hash"])
    if ends != {head["notice_id"]: (head["seq"], head["head"]) for head in heads}:
        raise Broken("the heads on the notices are not the ends of the chains")
    return len(rows)


def verify_at(url: str) -> int:
    """The same over a whole database, through a plain connection in another time zone."""
    options = "-c search_path=notifier -c timezone=Asia/Kolkata"
    with psycopg.connect(url, options=options, row_factory=dict_row) as connection:
        rows = connection.execute(ROWS).fetchall()
        return verify(rows, connection.execute(HEADS).fetchall())
