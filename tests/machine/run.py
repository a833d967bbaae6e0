"""Runs the machine over grounds of its own and tells which edges were taken."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from notifier.store.embedded import EmbeddedServer
from tests.machine.example import Edge
from tests.machine.ground import KINDS, Ground, ground_of
from tests.machine.machine import NoticeMachine


class Trouble(logging.Handler):
    """Looks that failed are logged and passed over; here they must not happen at all."""

    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage())


@contextmanager
def loud() -> Iterator[None]:
    """Pauses are drawn on purpose and need not be told; a failing look must not be hidden."""
    looks, recording = (
        logging.getLogger(f"notifier.flow.{name}") for name in ("reconcile", "recording")
    )
    handler = Trouble(logging.WARNING)
    looks.addHandler(handler)
    recording.setLevel(logging.ERROR)
    try:
        yield
    finally:
        looks.removeHandler(handler)
        recording.setLevel(logging.NOTSET)


AT_ONCE = 250
"""Examples of one Hypothesis run; it remembers all of them, so a long run has many."""


@contextmanager
def grounds(server: EmbeddedServer) -> Iterator[list[Ground]]:
    # Jitter is chance that the design bounds; where it differed, an example could not be replayed.
    with mock.patch("secrets.randbelow", lambda below: below // 2), loud(), ExitStack() as stack:
        yield [stack.enter_context(ground_of(server, kind)) for kind in KINDS]


def run(
    places: list[Ground], *, examples: int, steps: int, first_seed: int, until: float | None = None
) -> tuple[int, Counter[Edge]]:
    """At least `examples` examples (fewer where `until`, monotonic, comes first), and the edges."""
    edges: Counter[Edge] = Counter()
    done = 0
    while done < examples and (until is None or time.monotonic() < until):
        machine = machine_over(places, edges)
        seed(first_seed)(machine)
        batch = min(AT_ONCE, examples - done)
        run_state_machine_as_test(machine, settings=settings_for(batch, steps))
        done += machine.examples
        first_seed += 1
    return done, edges


def machine_over(places: list[Ground], edges: Counter[Edge]) -> type[NoticeMachine]:
    """A class of its own: Hypothesis keeps the seed on it."""
    machine: type[NoticeMachine] = type("NoticeMachine", (NoticeMachine,), {})
    machine.grounds, machine.edges, machine.examples = places, edges, 0
    return machine


def settings_for(examples: int, steps: int) -> settings:
    """The same ones whenever an example is to be played again."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.normal,
        print_blob=True,
    )
