"""The twins of a list for programs and sheets: exactly the rows of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from flask import Response

from notifier.domain import tables
from notifier.domain.tables import Cell
from notifier.web.people.visit import Form

__all__ = ["Cell"]

Rows = Iterable[Mapping[str, Cell]]

TYPES: Final = {
    Form.JSON: "application/json",
    Form.CSV: "text/csv; charset=utf-8",
    Form.NDJSON: "application/x-ndjson",
}


def as_json(rows: Rows, as_of: datetime, links: Mapping[str, str | None]) -> Response:
    """The rows with the time of reading and the addresses of the pages beside."""
    body = {"as_of": tables.exact(as_of), **links, "rows": [tables.plain(row) for row in rows]}
    return Response(tables.json_text(body), content_type=TYPES[Form.JSON])


def as_csv(name: str, columns: Sequence[str], rows: Rows) -> Response:
    """Everything quoted, CRLF, and no cell that a spreadsheet would run (ASVS 1.2.10)."""
    return _attached(name, Form.CSV, tables.csv_lines(columns, rows))


def as_ndjson(name: str, rows: Rows) -> Response:
    """One JSON object a line."""
    return _attached(name, Form.NDJSON, tables.json_lines(rows))


def for_programs(
    form: Form,
    name: str,
    columns: Sequence[str],
    rows: Rows,
    as_of: datetime,
    links: Mapping[str, str | None],
) -> Response | None:
    """The rows in the form that is asked for; None where that is a form for people."""
    match form:
        case Form.JSON:
            return as_json(rows, as_of, links)
        case Form.CSV:
            return as_csv(name, columns, rows)
        case Form.NDJSON:
            return as_ndjson(name, rows)
        case _:
            return None


def _attached(name: str, form: Form, text: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return Response(text, content_type=TYPES[form], headers=headers)
