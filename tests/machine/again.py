"""A failing example once more: by itself, or with its whole batch before it.

By itself it is quick, and enough unless it failed for what earlier examples had left behind.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress

import hypothesis
from hypothesis import reproduce_failure
from hypothesis.errors import DidNotReproduce
from hypothesis.stateful import run_state_machine_as_test

from tests.machine.ground import Ground
from tests.machine.run import machine_over, settings_for

COMMAND = "python -m tests.machine"
CHOICES = re.compile(r"@reproduce_failure\('[^']*', b'([^']*)'\)")
"""As Hypothesis prints an example's choices."""


def commands(failure: str, *, examples: int, steps: int, seed: int) -> str:
    """How to play again what is told in `failure`, the text of an exception."""
    batch = f"--examples {examples} --seed {seed} --processes 1 --least 0"
    found = list(dict.fromkeys(CHOICES.findall(failure)))
    lines = [f"once more, alone: {COMMAND} --steps {steps} --replay {each}" for each in found]
    return "\n".join([*lines, f"its whole batch: {COMMAND} --steps {steps} {batch}"])


def replay(places: list[Ground], choices: str, steps: int) -> None:
    """Play one example by its choices; raises what fails in it."""
    machine = machine_over(places, Counter())
    reproduce_failure(hypothesis.__version__, choices.encode())(machine)
    with suppress(DidNotReproduce):
        run_state_machine_as_test(machine, settings=settings_for(1, steps))
