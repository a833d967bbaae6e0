"""The real flows over the test's own database, for comparison."""

from __future__ import annotations

from tests.db.conftest import make_rig

__all__ = ["make_rig"]
