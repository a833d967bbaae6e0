"""The benchmark's short form: limits that only something ten times slower would miss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notifier.store.embedded import EmbeddedServer
from tests.bench import admission, memory, sending, steps
from tests.bench.figures import quantile
from tests.bench.ground import Ground, running_app, surrounded


@pytest.fixture
def ground(postgres: EmbeddedServer, database_url: str, tmp_path: Path) -> Iterator[Ground]:
    with surrounded(tmp_path, database_url, postgres.bin_dir) as found:
        yield found


def test_admission_and_sending_keep_their_pace_in_little_memory(ground: Ground) -> None:
    """One start of the product for all of it; starting costs more than measuring."""
    with running_app(ground, workers=8) as app:
        idle = sending.measured(ground, app, rate=4, seconds=3)
        busy = sending.measured(ground, app, rate=25, seconds=3)
        again = admission.replayed(ground, app, count=30)
        found = admission.measured(ground, app, rounds=1, seconds=2)
        held = memory.measured(app)
    assert quantile(idle, 0.5) < 0.6
    assert quantile(busy, 0.99) < 5.0
    assert again["replay_share"].value < 3
    assert found["share"].value > 0.04
    assert found["p99"].value < 2000
    assert [each for each in held if not each.holds] == []


def test_each_step_of_sending_costs_a_few_plain_writes(ground: Ground) -> None:
    names = ("claim of 10 rows", "claim of 100 rows", "intent", "record")
    limits = dict(zip(names, (150, 800, 100, 150), strict=True))
    found = {each.name: each.value for each in steps.measured(ground, times=1)}
    for name, limit in limits.items():
        assert found[f"{name}, in plain inserts"] < limit
