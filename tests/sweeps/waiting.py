"""Waiting for what happens in other threads, other processes and the database."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


AT_ONCE_S = 8.0
"""Sooner than any period, lease or poll of the tests that ask for it, and later than a machine
with other work to do is late."""


def until(condition: Callable[[], object], limit_s: float = 30.0, *, what: str = "") -> float:
    """Wait until `condition` holds; seconds it took. Fails the test after `limit_s`."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < limit_s, f"not within {limit_s} s: {what or condition}"
        time.sleep(0.005)
    return time.monotonic() - began
