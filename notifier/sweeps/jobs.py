"""The functions that the scheduler's stored jobs name.

A stored job holds the text `notifier.sweeps.jobs:<function>`; a row whose text leads nowhere
is deleted by the store. So nothing here is ever renamed or moved, and nothing takes arguments.
Each function hands over to the runners registered in this process: one in a running product.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Runner(Protocol):
    """What runs one sweep by its name."""

    def tick(self, name: str) -> None:
        """Run the sweep now, if this process leads."""
        ...


_registered: list[tuple[int, Runner]] = []


def register(runner: Runner) -> None:
    """Let this process's ticks reach the runner; one that does not lead ignores them."""
    unregister(runner)
    _registered.append((os.getpid(), runner))


def unregister(runner: Runner) -> None:
    """Forget this runner."""
    _registered[:] = [entry for entry in _registered if entry[1] is not runner]


def _tick(name: str) -> None:
    # A fork inherits the list but none of the threads and connections behind it.
    for pid, runner in tuple(_registered):
        if pid == os.getpid():
            runner.tick(name)


def claim_tick() -> None:
    """Wake the claim loops if a row is due."""
    _tick("claim")


def poll_tick() -> None:
    """Ask providers about what they accepted."""
    _tick("poll")


def reconcile_tick() -> None:
    """Look unknown outcomes up."""
    _tick("reconcile")


def fallback_tick() -> None:
    """Decide the fallbacks whose time has come."""
    _tick("fallback")


def expiry_tick() -> None:
    """Close what has passed its stop time or its expiry."""
    _tick("expiry")


def rescue_tick() -> None:
    """Take back lapsed leases."""
    _tick("rescue")


def receipts_tick() -> None:
    """Apply receipts that were parked."""
    _tick("receipts")


def rollup_tick() -> None:
    """Count what pages and alerts show."""
    _tick("rollup")


def alert_tick() -> None:
    """Judge the alert rules."""
    _tick("alert")


def checkpoint_tick() -> None:
    """Sign a checkpoint over the trail."""
    _tick("checkpoint")


def retention_tick() -> None:
    """Remove what has outlived its retention."""
    _tick("retention")


def export_tick() -> None:
    """Go on with exports that were too large to wait for."""
    _tick("export")


def sender_domains_tick() -> None:
    """Check the sender domains' records."""
    _tick("sender_domains")


TICKS: dict[str, Callable[[], None]] = {
    "claim": claim_tick,
    "poll": poll_tick,
    "reconcile": reconcile_tick,
    "fallback": fallback_tick,
    "expiry": expiry_tick,
    "rescue": rescue_tick,
    "receipts": receipts_tick,
    "rollup": rollup_tick,
    "alert": alert_tick,
    "checkpoint": checkpoint_tick,
    "retention": retention_tick,
    "export": export_tick,
    "sender_domains": sender_domains_tick,
}
"""Sweep name (and job id) to function. Only sweeps that have a body are scheduled."""
