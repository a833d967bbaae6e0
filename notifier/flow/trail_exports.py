"""The trail as an auditor takes it out on a page: the very bytes of `flask trail export`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from notifier.store.database import PooledConnection
from notifier.store.ledger.exports import Export
from notifier.store.reads import trail, trail_export
from notifier.store.reads.trail_export import Scope


@dataclass(frozen=True, slots=True)
class TrailWriter:
    """Writes with these checkpoint keys named, as this version of the product."""

    keys: Mapping[str, bytes]
    version: str

    def __call__(
        self, connection: PooledConnection, export: Export, out: Callable[[bytes], object]
    ) -> int:
        """Write what the export asks for; how many rows of the trail."""
        scope = scope_of(export.parameters)
        with trail.snapshot(connection):
            found = trail_export.records(connection, scope)
            told = trail_export.write(found, scope, keys=self.keys, version=self.version, out=out)
        return int(told["rows"])


def scope_of(parameters: Mapping[str, str]) -> Scope:
    """One notice, or the days from `since` to `until` in UTC, both inclusive."""
    if "notice" in parameters:
        return Scope(UUID(parameters["notice"]))
    since, until = (
        datetime.fromisoformat(parameters[name]).replace(tzinfo=UTC) if name in parameters else None
        for name in ("since", "until")
    )
    return Scope(None, since, until + timedelta(days=1) if until else None)
