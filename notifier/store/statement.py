"""A statement of a hot path: its parameters are found once, not at each execution.

psycopg looks for placeholders anew each time a statement is executed, and remembers what it
found only for statements under four kilobytes; for the admission statement that was a fifth
of a request's work. Here names become numbers when the module is loaded, and the server gets
the statement as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import psycopg

Row = dict[str, Any]

_NAMED: Final = re.compile(r"%\((\w+)\)s")


class Statement:
    """`text` with `%(name)s` for parameters, and no other percent sign."""

    def __init__(self, text: str) -> None:
        self.names: Final = tuple(dict.fromkeys(_NAMED.findall(text)))
        number = {name: f"${position}" for position, name in enumerate(self.names, start=1)}
        self.text: Final = _NAMED.sub(lambda found: number[found[1]], text)
        if "%" in self.text:
            raise ValueError("a percent sign that is no parameter")

    def run(
        self, connection: psycopg.Connection[Row], values: Mapping[str, Any]
    ) -> psycopg.RawCursor[Row]:
        """Execute it, prepared; KeyError where a parameter is missing in `values`."""
        cursor = psycopg.RawCursor(connection)
        return cursor.execute(self.text, [values[name] for name in self.names], prepare=True)
