"""Whether the trail holds, and whether the states it leads to are those that stand.

Asked twice: of the product's own verifier and rebuilder, and of the tests' code for the chain,
which knows only the rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from notifier.flow.checkpoints import public_keys
from notifier.setting_readers import read_seed_ring
from notifier.store.database import Database
from notifier.store.reads import trail, trail_beside, trail_export, trail_rebuild
from notifier.store.reads.trail_export import Scope
from notifier.trail_verifier import Fault, Verifier
from tests.db import chain


@dataclass(slots=True)
class Verified:
    """What the checks found."""

    rows: int = 0
    notices: int = 0
    faults: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def verify(url: str, checkpoint_key: str) -> Verified:
    """Check every chain and checkpoint, and rebuild every state."""
    found = Verified()
    database = Database(url)
    try:
        _verify(database, checkpoint_key, found)
        with database.connection() as connection, trail.snapshot(connection):
            beside = list(trail_beside.differences(connection))
        for each in (*trail_rebuild.differences(database), *beside):
            what = f"stored {each.stored}, by the trail {each.rebuilt}"
            found.differences.append(f"{each.notice_id} {each.what}: {what}")
    finally:
        database.close()
    try:
        rows = chain.verify_at(url)
    except chain.Broken as broken:
        found.faults.append(str(broken))
    else:
        if rows != found.rows:
            found.faults.append(f"{rows} rows by the tests' code, {found.rows} by the product's")
    return found


def _verify(database: Database, checkpoint_key: str, found: Verified) -> None:
    def tell(fault: Fault) -> None:
        found.faults.append(str(fault))

    verifier = Verifier(public_keys(read_seed_ring(checkpoint_key).all), tell)
    with database.connection() as connection, trail.snapshot(connection):
        verifier.run(trail_export.records(connection, Scope()))
    found.rows, found.notices = verifier.rows, verifier.notices
