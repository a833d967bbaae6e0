"""Rows as text for programs and sheets: CSV that runs nothing, JSON that loses nothing.

CSV (RFC 4180): every cell quoted, CRLF, no byte order mark, and no cell that a spreadsheet would
take for a formula (OWASP ASVS 5.0, 1.2.10): such a cell gets an apostrophe in front. What a
previewer would take for markup gets a space after its `<`. JSON and NDJSON carry every value as
it is, times in UTC to the microsecond; there `<` is written as an escape, which loses nothing.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

Cell = str | int | bool | datetime | None
Row = Mapping[str, Cell]

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\0")
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")


def exact(moment: datetime) -> str:
    """A time without loss: `2026-01-31T09:30:00.123456Z`; whole seconds stay short."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def csv_lines(columns: Sequence[str], rows: Iterable[Row], *, headed: bool = True) -> str:
    """The rows as CSV, with the names of the columns first unless they were written before."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if headed:
        writer.writerow(columns)
    for row in rows:
        writer.writerow([_inert(row[name]) for name in columns])
    return text.getvalue()


def json_row(row: Row) -> str:
    """One row as a JSON object on one line."""
    return json_text(plain(row))


def json_text(value: object) -> str:
    """A value as JSON in which nothing looks like markup."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def json_lines(rows: Iterable[Row]) -> str:
    """The rows as NDJSON: one object a line, each line ended."""
    return "".join(f"{json_row(row)}\n" for row in rows)


def plain(row: Row) -> dict[str, str | int | bool | None]:
    """The row with its times as text."""
    return {
        name: exact(value) if isinstance(value, datetime) else value for name, value in row.items()
    }


def _inert(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    text = _TAG.sub("< ", str(value))
    return f"'{text}" if isinstance(value, str) and value.startswith(_FORMULA) else text
