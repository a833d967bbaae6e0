"""The same ground as the ledger's tests: one database, emptied before each."""

from __future__ import annotations

from tests.db.conftest import make_rig, rig, watch
from tests.db.ledger.conftest import database_url, recycled

__all__ = ["database_url", "make_rig", "recycled", "rig", "watch"]
