"""What a guard is: a place in the product that keeps a promise, and the test that watches it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LAST_MIGRATION = "migrations/sql/0001_moves.sql"
"""Statements appended here run when the schema is complete, before any grant."""


class Stale(Exception):
    """The guard's place is not (or not once) where the table says: the table is out of date."""


@dataclass(frozen=True)
class Replaced:
    """Breaks a guard by putting `new` where `old` stands, exactly once, in `path`."""

    path: str
    old: str
    new: str

    def apply(self, checkout: Path) -> None:
        """Break the guard in a copy of the checkout; raises `Stale`."""
        place = checkout / self.path
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        found = text.count(self.old)
        if found != 1:
            raise Stale(f"{found} times in {self.path}: {self.old.strip()[:60]!r}")
        place.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True)
class Migrated:
    """Breaks a guard of the schema by statements that run after the migration."""

    statements: str

    path = LAST_MIGRATION

    def apply(self, checkout: Path) -> None:
        """Break the guard in a copy of the checkout."""
        place = checkout / self.path
        text = place.read_text(encoding="utf-8")
        place.write_text(f"{text}\n{self.statements};\n", encoding="utf-8")


@dataclass(frozen=True)
class Guard:
    """One guard. `name` says what it does, `without` what would happen if it were not there.

    `test` is the pytest id of the test that must turn red; `quick` guards are also broken by
    the ordinary test run.
    """

    name: str
    promise: str
    without: str
    broken_by: Replaced | Migrated
    test: str
    quick: bool = False
