"""Takes a whole list, or the trail, out as a file, part by part.

What is small is done while the person waits. The rest is left where it stands and taken up by a
sweep, a slice at a time: parts and place are stored together, so a restart costs one part. The
instant of the request bounds what the file holds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol
from uuid import UUID

from uuid_utils.compat import uuid7

from notifier.domain import tables
from notifier.domain.tables import Row
from notifier.store.database import Database, PooledConnection
from notifier.store.ledger import exports
from notifier.store.ledger.exports import Export

__all__ = ["Export"]

log = logging.getLogger(__name__)

TRAIL: Final = "trail"
FORMATS: Final = ("csv", "json", "ndjson")
AT_ONCE_ROWS: Final = 10_000
"""Up to here an export is made while its reader waits."""
AT_ONCE_S: Final = 5.0
SLICE_S: Final = 1.5
"""How long one turn of the sweep works on an export."""
BATCH: Final = 500
PIECE: Final = 256 * 1024


class Source(Protocol):
    """A list that can be taken out."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of its cells, in order."""
        ...

    @property
    def masked(self) -> Sequence[str]:
        """Which of them hold a mask in place of a value."""
        ...

    def batch(
        self, connection: PooledConnection, export: Export, place: Any, size: int
    ) -> tuple[Sequence[Row], Any]:
        """Up to `size` rows from `place` on, and where to go on; None at the end."""
        ...


Trail = Callable[[PooledConnection, Export, Callable[[bytes], object]], int]
"""Writes the trail that an export asks for, piece by piece; how many records."""


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants: the list, its filter as parameters and in words, the format.

    `reader_zone` is the zone in which they read times; the file's own stay in UTC.
    """

    what: str
    parameters: Mapping[str, str]
    words: str
    format: str
    by: str
    role: str
    request_id: str
    reason: str | None = None
    reader_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Exporter:
    """Makes exports from these sources. `trail` is asked for what is called `trail`."""

    database: Database
    sources: Mapping[str, Source]
    trail: Trail | None = None

    def order(self, connection: PooledConnection, order: Order) -> UUID:
        """Begin an export and go on with it for a moment; what is left is for the sweep."""
        source = self.sources.get(order.what)
        values = {
            "export_id": uuid7(),
            "requested_by": order.by,
            "role": order.role,
            "request_id": order.request_id,
            "reason": order.reason,
            "what": order.what,
            "parameters": order.parameters,
            "words": order.words,
            "format": order.format,
            "reader_zone": order.reader_zone,
            "masked": list(source.masked) if source else [],
        }
        export = exports.begin(connection, values)
        if order.what == TRAIL and "notice" not in order.parameters:
            exports.let_go(connection, export)
            return export.export_id
        return self._work(connection, export, AT_ONCE_S, AT_ONCE_ROWS)

    def read(self, export_id: UUID) -> Iterator[bytes]:
        """The file, a part at a time; no connection is held while its reader takes one.

        Raises `PartMissing` where it was erased meanwhile, so that what came is not taken for all.
        """
        place, is_last = 0, False
        while not is_last:
            with self.database.connection() as connection:
                body, is_last = exports.part(connection, export_id, place)
            yield body
            place += 1

    def run_due(self, connection: PooledConnection) -> int:
        """One slice of the oldest export that waits, and what is over its time; how much."""
        export = exports.claim(connection)
        if export is not None:
            self._guarded(connection, export)
        return exports.erase(connection) + (export is not None)

    def _guarded(self, connection: PooledConnection, export: Export) -> None:
        if export.tries > exports.MOST_TRIES:
            exports.give_up(connection, export)
            return
        try:
            self._work(connection, export, SLICE_S)
        except Exception as error:  # noqa: BLE001 - one export that fails must not stop the others
            log.warning("an export failed: %s", type(error).__name__)

    def _work(
        self, connection: PooledConnection, export: Export, seconds: float, most: int | None = None
    ) -> UUID:
        """Go on with an export as long as it may take, and close it or let it go."""
        if export.what == TRAIL:
            self._write_trail(connection, export)
            return export.export_id
        until, left = time.monotonic() + seconds, True
        while left and time.monotonic() < until and (most is None or export.rows < most):
            export, left = self._write_part(connection, export)
        if left:
            exports.let_go(connection, export)
        else:
            exports.finish(connection, export)
        return export.export_id

    def _write_part(self, connection: PooledConnection, export: Export) -> tuple[Export, bool]:
        """One more part; the export as it stands then, and whether there is more to come."""
        if export.parts and export.place is None:
            return export, False
        source = self.sources[export.what]
        rows, place = source.batch(connection, export, export.place, BATCH)
        body = _text(export, source.columns, rows, is_last=place is None).encode()
        grown = exports.add_part(
            connection, export, parts=export.parts, body=body, rows=len(rows), place=place
        )
        if not grown:
            message = "somebody else goes on with this export"
            raise RuntimeError(message)
        more = replace(export, parts=export.parts + 1, rows=export.rows + len(rows), place=place)
        return more, place is not None

    def _write_trail(self, connection: PooledConnection, export: Export) -> None:
        """In one go, from one snapshot, on a connection of its own."""
        if self.trail is None:
            exports.give_up(connection, export)
            return
        if export.parts:
            exports.start_over(connection, export)
        keeper = _Keeper(connection, replace(export, parts=0))
        with self.database.connection() as reading:
            records = self.trail(reading, export, keeper.take)
        keeper.end(records)
        exports.finish(connection, export)


class _Keeper:
    """Gathers what is written into parts of a bounded size."""

    def __init__(self, connection: PooledConnection, export: Export) -> None:
        self._connection = connection
        self._export = export
        self._parts = 0
        self._waiting = bytearray()

    def take(self, piece: bytes) -> None:
        """Keep this."""
        self._waiting += piece
        if len(self._waiting) >= PIECE:
            self._store(0)

    def end(self, rows: int) -> None:
        """Keep what is left, and how many rows there were in all."""
        self._store(rows)

    def _store(self, rows: int) -> None:
        body = bytes(self._waiting)
        if not exports.add_part(
            self._connection, self._export, parts=self._parts, body=body, rows=rows, place=None
        ):
            message = "somebody else goes on with this export"
            raise RuntimeError(message)
        self._parts += 1
        self._waiting.clear()


def _text(export: Export, columns: Sequence[str], rows: Sequence[Row], *, is_last: bool) -> str:
    match export.format:
        case "csv":
            return tables.csv_lines(columns, rows, headed=export.parts == 0)
        case "ndjson":
            return tables.json_lines(rows)
        case _:
            head = (
                f'{{"as_of":"{tables.exact(export.as_of)}","rows":[\n' if not export.parts else ""
            )
            between = ",\n" if export.rows and rows else ""
            tail = "\n]}\n" if is_last else ""
            return head + between + ",\n".join(map(tables.json_row, rows)) + tail
