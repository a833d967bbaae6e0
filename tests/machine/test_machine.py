"""A short run of the machine for every change; `python -m tests.machine` is the long one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from notifier.store.embedded import EmbeddedServer
from tests.machine import edges, openings
from tests.machine.example import Edge
from tests.machine.ground import Ground
from tests.machine.pair import Pair
from tests.machine.run import grounds, run

EXAMPLES = 50
STEPS = 8
SEED = 20_310_301
"""Always the same examples: chance is for the long run."""

SALTS = 12
"""Variants of each opening; with them every edge is reached by design, not by luck."""


@pytest.fixture(scope="module")
def places(postgres: EmbeddedServer) -> Iterator[list[Ground]]:
    with grounds(postgres) as made:
        yield made


def test_p3_p5_p6_each_opening_goes_as_the_model_says_and_all_take_every_edge(
    places: list[Ground],
) -> None:
    taken: Counter[Edge] = Counter()
    for opening in openings.OPENINGS.values():
        for salt in range(SALTS):
            pair = Pair(places[opening.kinds[salt % len(opening.kinds)]], taken)
            opening.act(pair, salt)
            pair.compared()
            pair.finish()
    sys.stdout.write(f"{edges.table(taken)}\n")

    assert set(taken) == edges.reachable()


def test_p3_p9_p12_no_interleaving_leads_where_the_design_does_not(places: list[Ground]) -> None:
    done, taken = run(places, examples=EXAMPLES, steps=STEPS, first_seed=SEED)
    sys.stdout.write(f"{done} examples from seed {SEED}\n{edges.table(taken)}\n")

    assert done >= EXAMPLES
    assert set(taken) <= edges.reachable()


def test_each_edge_that_cannot_be_taken_is_in_the_table_and_has_a_reason() -> None:
    named = [edge for some in edges.NO_WAY.values() for edge in some]

    assert set(named) <= edges.permitted()
    assert len(named) == len(set(named))
    assert all(reason for reason in edges.NO_WAY)


def test_each_opening_names_surroundings_that_there_are() -> None:
    assert all(set(each.kinds) <= set(openings.ANY) for each in openings.OPENINGS.values())
