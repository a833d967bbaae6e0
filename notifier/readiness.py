"""Whether this process does its part, told part by part with what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import psycopg

from notifier.clock import ClockUnknown
from notifier.store.database import Database, StoreUnavailable
from notifier.store.schema import head
from notifier.sweeps.claim_loop import ClaimLoop
from notifier.sweeps.host import ReadinessPart
from notifier.sweeps.line import time_boxed
from notifier.web.services import PartReport

TROUBLE: Final = (StoreUnavailable, psycopg.Error, ClockUnknown)
WAIT_S: Final = 1.0
"""How long to wait for a connection, and then for its answer, before saying that there is none."""

LOOK: Final = """
SELECT version_num, current_setting('transaction_read_only') = 'on' AS read_only
  FROM alembic_version
"""


@dataclass(frozen=True, slots=True)
class Readiness:
    """What is looked at. `unwritten` counts outcomes that wait for the store.

    `embedded` tells of the Postgres that this process's parent keeps running, if it does.
    """

    database: Database
    sweeps: Callable[[], Iterable[ReadinessPart]]
    claim_loop: ClaimLoop | None
    unwritten: Callable[[], int]
    embedded: Callable[[], tuple[bool, str]] | None = None

    def parts(self) -> list[PartReport]:
        """Each part of this process with whether it is well; asks the database once."""
        found = [self._database()]
        if self.embedded:
            found.append(PartReport("postgres", *self.embedded()))
        found += [PartReport(each.part, each.ok, each.detail) for each in self.sweeps()]
        if self.claim_loop:
            alive = self.claim_loop.is_alive()
            found.append(PartReport("claim_loop", alive, "runs" if alive else "not running"))
            waiting = self.unwritten()
            detail = f"{waiting} outcomes wait to be written" if waiting else "all written"
            found.append(PartReport("outcomes", waiting == 0, detail))
        return found

    def _database(self) -> PartReport:
        try:
            with (
                self.database.connection(timeout=WAIT_S) as connection,
                time_boxed(connection, WAIT_S),
            ):
                row = connection.execute(LOOK).fetchone()
        except TROUBLE as error:
            return PartReport("database", ok=False, detail=f"no answer: {type(error).__name__}")
        if row and row["read_only"]:
            return PartReport("database", ok=False, detail="takes no writes")
        found, needed = (row or {}).get("version_num"), head()
        return PartReport("database", found == needed, f"schema {found}, needs {needed}")
