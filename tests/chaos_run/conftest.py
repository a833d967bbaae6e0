"""The rigs of the store's tests."""

from __future__ import annotations

from tests.db.conftest import make_rig, rig

__all__ = ["make_rig", "rig"]
