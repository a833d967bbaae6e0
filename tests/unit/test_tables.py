"""Rows as text: nothing runs in a sheet or a previewer, and JSON loses nothing."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pytest

from notifier.domain import tables

AT = datetime(2026, 1, 31, 9, 30, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\0"])
def test_a_cell_that_begins_like_a_formula_gets_an_apostrophe(start: str) -> None:
    text = tables.csv_lines(["a"], [{"a": f"{start}SUM(A1)"}], headed=False)
    assert text.startswith("\"'")
    assert text.endswith("\r\n")


def test_numbers_below_nought_stay_numbers_and_nothing_is_empty() -> None:
    rows = [{"a": -5, "b": None, "c": True, "d": AT}]
    text = tables.csv_lines(["a", "b", "c", "d"], rows)
    assert list(csv.reader(io.StringIO(text)))[1] == ["-5", "", "True", "2026-01-31T09:30:00Z"]


@pytest.mark.parametrize("text", ["<img src=x>", "=1<b>", "a < b", 'quote " comma ,', "\u2028é"])
def test_json_gives_back_what_went_in_and_holds_no_markup(text: str) -> None:
    line = tables.json_lines([{"a": text, "at": AT}])
    assert json.loads(line) == {"a": text, "at": "2026-01-31T09:30:00.123456Z"}
    assert "<" not in line
    assert "<img" not in tables.csv_lines(["a"], [{"a": text}])
