"""A failure that nobody can play again is a rumour."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest

from notifier.store.embedded import EmbeddedServer
from tests.machine import openings
from tests.machine.again import CHOICES, commands, replay
from tests.machine.ground import Ground
from tests.machine.openings.words import ANY, Act, Opening, new
from tests.machine.pair import Pair
from tests.machine.run import grounds, run

STEPS = 3


class Broken(Exception):
    """What the opening raises."""


@pytest.fixture(scope="module")
def places(postgres: EmbeddedServer) -> Iterator[list[Ground]]:
    with grounds(postgres) as made:
        yield made


def sound(pair: Pair, salt: int) -> None:
    new(pair, salt)


def broken(pair: Pair, salt: int) -> None:
    new(pair, salt)
    if salt > 20:
        raise Broken


def only(monkeypatch: pytest.MonkeyPatch, act: Act) -> None:
    """Every example begins with `act`."""
    monkeypatch.setattr(openings, "OPENINGS", dict.fromkeys(openings.OPENINGS, Opening(act, ANY)))


def test_a_failure_tells_the_command_that_plays_its_example_again(
    places: list[Ground], monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, broken)
    with pytest.raises(Broken) as failed:
        run(places, examples=30, steps=STEPS, first_seed=1)
    told = "".join(traceback.format_exception(failed.value))
    [choices] = CHOICES.findall(told)

    with pytest.raises(Broken):
        replay(places, choices, STEPS)
    only(monkeypatch, sound)
    replay(places, choices, STEPS)

    alone, batch = commands(told, examples=30, steps=STEPS, seed=1).splitlines()
    assert alone.endswith(f"python -m tests.machine --steps 3 --replay {choices}")
    assert batch.endswith("--steps 3 --examples 30 --seed 1 --processes 1 --least 0")
