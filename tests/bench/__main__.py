"""`make bench`: every figure, as a table and as JSON in `bench-results/`."""

from __future__ import annotations

import os
import sys

from peers.app_process import ROOT
from tests.bench import admission, memory, sending, steps
from tests.bench.figures import Figure, keep, table
from tests.bench.ground import Ground, prepared, running_app

WORKERS = 16


def main() -> None:
    """Measure all; a missed goal is marked, because a busy machine misses some."""
    with prepared() as ground:
        figures = [*steps.measured(ground, times=10), *_admission(ground)]
    with prepared() as ground:
        figures += _sending(ground)
    path = keep(figures, ROOT / "bench-results")
    load = os.getloadavg()[0]
    sys.stdout.write(f"{table(figures)}\n\nload average {load:.1f} on {os.cpu_count()} processors")
    sys.stdout.write(f"\n{path.relative_to(ROOT)}\n")


def _admission(ground: Ground) -> list[Figure]:
    with running_app(ground, workers=0) as app:
        again = admission.replayed(ground, app, count=300)
        alone = admission.measured(ground, app, rounds=3, seconds=6)
    return [*alone.values(), *again.values()]


def _sending(ground: Ground) -> list[Figure]:
    """On a database of its own: what nobody sent elsewhere would be sent here first."""
    with running_app(ground, workers=WORKERS) as app:
        idle = sending.measured(ground, app, rate=4, seconds=15)
        busy = sending.measured(ground, app, rate=100, seconds=20)
        both = admission.burst(ground, app, seconds=6)
        held = memory.measured(app)
    return [
        *sending.figures("idle", idle, p50_ms=60, p99_ms=300),
        *sending.figures("100 events a second", busy, p50_ms=None, p99_ms=1000),
        Figure("admission beside sending: 202s", admission.rate_of(both), "1/s"),
        *held,
    ]


if __name__ == "__main__":
    main()
