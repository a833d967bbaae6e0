"""`python -m tests.machine [--examples N | --replay CHOICES]`: the long run, or one example of it.

Prints how often each edge of the state table was taken, keeps the same as JSON in
`bench-results/machine.json`, and ends with 1 where the product and the model disagreed or an
edge was taken too seldom.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from pathlib import Path

from tests import database as databases
from tests.machine import edges
from tests.machine.again import replay
from tests.machine.example import Edge
from tests.machine.run import grounds
from tests.machine.spread import Result, spread

RESULTS = Path(__file__).resolve().parents[2] / "bench-results"


def main() -> int:
    arguments = _arguments()
    databases.choose_folder()
    server = databases.run_server()
    try:
        databases.ensure_template(server)
        if arguments.replay is None:
            return _run(arguments)
        with grounds(server) as places:
            replay(places, arguments.replay, arguments.steps)
    finally:
        server.stop()
        databases.remove_server()
    _say("the example passes")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    least = edges.LEAST if arguments.least is None else arguments.least
    result = spread(
        arguments.examples,
        arguments.steps,
        arguments.seed,
        arguments.processes,
        lambda so_far: _tell(so_far, arguments.seed, least),
    )
    seldom = edges.seldom(result.taken, least)
    _say(edges.table(result.taken))
    for edge in seldom:
        _say(f"too seldom: {edge[0]} -> {edge[1]}: {edge[2]}")
    for fault in result.faults:
        _say(fault)
    _say(f"{result.done} examples, {len(result.faults)} failures, {len(seldom)} edges too seldom")
    return 1 if seldom or result.faults or result.done < arguments.examples else 0


def _tell(result: Result, seed: int, least: int) -> None:
    """Progress, and the figures so far: a run that is broken off is not lost."""
    rate = result.done / result.seconds
    seldom = edges.seldom(result.taken, least)
    _say(
        f"{result.done} examples from seed {seed}, {rate:.1f} a second, "
        f"{len(seldom)} edges too seldom, {len(result.faults)} failures"
    )
    for fault in result.faults[-1:]:
        _say(fault)
    _keep(seed, result, seldom)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.machine")
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=12, help="rules in an example, at most")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000) * 1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replay", help="an example's choices, as a failure tells them")
    parser.add_argument("--least", type=int, help="how often each edge is to be taken")
    return parser.parse_args()


def _keep(seed: int, result: Result, seldom: list[Edge]) -> None:
    RESULTS.mkdir(exist_ok=True)
    document = {
        "seed": seed,
        "examples": result.done,
        "seconds": round(result.seconds, 1),
        "edges": [
            {"from": edge[0], "to": edge[1], "reason": edge[2], "taken": count}
            for edge, count in sorted(result.taken.items())
        ],
        "too_seldom": [list(edge) for edge in seldom],
        "failures": len(result.faults),
    }
    (RESULTS / "machine.json").write_text(json.dumps(document, indent=2) + "\n")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
