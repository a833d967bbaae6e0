"""A rehearsal tells what the product does: every scenario, row for row, in the real ledger."""

from __future__ import annotations

import os

import pytest

from notifier.rehearsal import library
from notifier.rehearsal.engine import rehearse
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.rehearsal.drawn import drawn
from tests.rehearsal.ledger import in_the_real_ledger, steps_of, without_jitter


@pytest.mark.parametrize("name", library.names())
def test_the_real_ledger_writes_the_same_trail(name: str, make_rig: MakeRig, clock: Clock) -> None:
    script = without_jitter(library.load(name))
    rehearsed = rehearse(script, library.policy_for(script, None))

    real = in_the_real_ledger(make_rig, clock, script, rehearsed)

    assert real == steps_of(rehearsed)


@pytest.mark.parametrize("seed", range(int(os.environ.get("REHEARSAL_SEEDS", "8"))))
def test_the_real_ledger_writes_the_same_trail_for_any_script(
    seed: int, make_rig: MakeRig, clock: Clock
) -> None:
    script = drawn(seed)
    rehearsed = rehearse(script, library.policy_for(script, None))

    real = in_the_real_ledger(make_rig, clock, script, rehearsed)

    assert real == steps_of(rehearsed)
