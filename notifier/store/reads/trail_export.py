"""The trail as records: what an export holds, and what `flask trail verify` looks at.

The order is fixed (docs/reference/trail-export.md), so that the same trail always gives the
same bytes, and a reader needs no more memory than one notice takes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.store.reads import trail
from notifier.store.reads.trail import EVERYTHING, Row, by_notice, stream, written

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

Record = dict[str, Any]

FORMAT: Final = 1

LEFT_OUT: Final = (
    "No addresses, numbers, masks or fingerprints of people: they are kept apart from the trail"
    " and are no part of it. No links, tokens or texts of messages: they are kept nowhere."
)

# The admission stays for ever: a notice that was removed as a whole is missed by it.
NOTICES: Final = """
SELECT notice_id, a.event_id IS NOT NULL AS admitted, n.seq, n.head AS hash
  FROM admission a FULL JOIN notice n USING (notice_id)
 WHERE {scope} ORDER BY notice_id
"""
# All heads of a checkpoint or none: otherwise nobody could check what it is over.
ANCHORS: Final = """
SELECT notice_id, number AS checkpoint, seq, head AS hash FROM checkpoint_head
 WHERE number IN (SELECT number FROM checkpoint_head WHERE {scope})
 ORDER BY notice_id, number
"""
ALL_ANCHORS: Final = """
SELECT notice_id, number AS checkpoint, seq, head AS hash FROM checkpoint_head
 ORDER BY notice_id, number
"""
CHECKPOINTS: Final = """
SELECT number, made_at, previous, head_count AS heads, heads_digest AS heads_sha256, key_id,
       signature, hash
  FROM checkpoint ORDER BY number
"""
ONE_NOTICE: Final = "notice_id = %(notice)s"
CHANGED_WITHIN: Final = """notice_id IN (SELECT x.notice_id FROM transition x
    WHERE (x.recorded_at >= %(since)s) IS NOT FALSE AND (x.recorded_at < %(until)s) IS NOT FALSE)"""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which notices: all, one, or those with a change in a span; always their whole chains."""

    notice: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def condition(self) -> str:
        """SQL over `notice_id`, with `values`."""
        if self.notice:
            return ONE_NOTICE
        return CHANGED_WITHIN if self.since or self.until else EVERYTHING

    @property
    def values(self) -> dict[str, object]:
        """The parameters of `condition`."""
        return {"notice": self.notice, "since": self.since, "until": self.until}

    def told(self) -> object:
        """As the export's first line says it."""
        said = {"notice": self.notice, "since": self.since, "until": self.until}
        return {name: _plain(value) for name, value in said.items() if value} or "all"


def records(connection: PooledConnection, scope: Scope) -> Iterator[Record]:
    """The records between first line and manifest; use it inside `trail.snapshot`."""
    condition, values = scope.condition, scope.values
    anchors = ALL_ANCHORS if condition == EVERYTHING else ANCHORS.format(scope=condition)
    groups = by_notice(
        stream(connection, "trail_rows", trail.ROWS.format(scope=condition), **values),
        stream(connection, "trail_notices", NOTICES.format(scope=condition), **values),
        stream(connection, "trail_anchors", anchors, **values),
    )
    for _, (rows, notices, sealed) in groups:
        yield from (_record("transition", row) for row in rows)
        yield from (_record("notice", row) for row in notices)
        yield from (_record("anchor", row) for row in sealed)
    for row in stream(connection, "trail_checkpoints", CHECKPOINTS):
        yield _record("checkpoint", row)


def write(
    found: Iterable[Record],
    scope: Scope,
    *,
    keys: Mapping[str, bytes],
    version: str,
    out: Callable[[bytes], object],
) -> Record:
    """Write an export, a line a record, between its first line and its manifest; the manifest."""
    paper = _Paper(out)
    paper.write(
        {
            "kind": "export",
            "format": FORMAT,
            "product_version": version,
            "scope": scope.told(),
            "keys": {name: key.hex() for name, key in keys.items()},
            "left_out": LEFT_OUT,
        }
    )
    for record in found:
        paper.write(record)
    manifest = paper.manifest(version)
    paper.write(manifest)
    return manifest


class _Paper:
    """Writes records, and knows what the manifest will say of them."""

    def __init__(self, out: Callable[[bytes], object]) -> None:
        self._out = out
        self._digest = hashlib.sha256()
        self._counts: Counter[str] = Counter()
        self._first: str | None = None
        self._last: str | None = None

    def write(self, record: Record) -> None:
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        self._digest.update(line)
        self._counts[record["kind"]] += 1
        if record["kind"] == "transition":
            at = record["recorded_at"]
            self._first, self._last = min(self._first or at, at), max(self._last or at, at)
        self._out(line)

    def manifest(self, version: str) -> Record:
        return {
            "kind": "manifest",
            "rows": self._counts["transition"],
            "notices": self._counts["notice"],
            "checkpoints": self._counts["checkpoint"],
            "first_recorded_at": self._first,
            "last_recorded_at": self._last,
            "product_version": version,
            "sha256": self._digest.hexdigest(),
        }


def _record(kind: str, row: Row) -> Record:
    return {"kind": kind, **{name: _plain(value) for name, value in row.items()}}


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return written(value)
    return str(value) if isinstance(value, UUID) else value
