"""Shares a long run between processes, each with databases of its own on the one server."""

from __future__ import annotations

import multiprocessing
import queue
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from typing import Any

from tests import database as databases
from tests.machine.again import commands
from tests.machine.example import Edge
from tests.machine.run import AT_ONCE, grounds, run

SEEDS_APART = 100_000
Told = tuple[int, Counter[Edge], str | None]
"""Examples that were run, the edges that they took, and the failure that ended them."""


@dataclass
class Result:
    """What the examples came to so far."""

    began: float = field(default_factory=time.monotonic)
    done: int = 0
    taken: Counter[Edge] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


def spread(
    examples: int, steps: int, seed: int, processes: int, tell: Callable[[Result], None]
) -> Result:
    """Run `examples` examples; `tell` is called after each batch of them."""
    context = multiprocessing.get_context("spawn")
    told: Queue[Told] = context.Queue()
    share = -(-examples // processes)
    workers: list[BaseProcess] = [
        context.Process(target=work, args=(told, share, steps, seed + number * SEEDS_APART))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    result = Result()
    while (one := _next(told, workers)) is not None:
        result.done += one[0]
        result.taken.update(one[1])
        result.faults += [one[2]] if one[2] else []
        tell(result)
    for worker in workers:
        worker.join()
    return result


def _next(told: Queue[Told], workers: list[BaseProcess]) -> Told | None:
    """The next message; None once nobody is left who could send one."""
    while True:
        alive = any(worker.is_alive() for worker in workers)
        try:
            return told.get(timeout=1)
        except queue.Empty:
            if not alive:
                return None


def work(told: Queue[Any], examples: int, steps: int, first_seed: int) -> None:
    """One process; after a failure it goes on with the next seed, to find more than one."""
    server = databases.run_server()
    with grounds(server) as places:
        for first in range(0, examples, AT_ONCE):
            batch = min(AT_ONCE, examples - first)
            seed = first_seed + first // AT_ONCE
            try:
                done, taken = run(places, examples=batch, steps=steps, first_seed=seed)
                told.put((done, taken, None))
            except Exception:  # noqa: BLE001 - a failure is what this looks for
                failure = traceback.format_exc()
                again = commands(failure, examples=batch, steps=steps, seed=seed)
                told.put((0, Counter(), f"seed {seed}\n{failure}\n{again}"))
