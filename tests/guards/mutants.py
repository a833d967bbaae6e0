"""Breaks the guards one by one, each in a copy of the checkout, and sees its test turn red.

`python -m tests.guards.mutants [part of a name ...]` prints a table and JSON; it ends with 1 if
a guard can be broken unnoticed, or if the table of guards is out of date. Two copies work side by
side, each on a Postgres that it keeps; a guard of the schema is broken in one of its own.
"""

from __future__ import annotations

import json
import queue
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from enum import StrEnum

from tests.guards.admission_guards import ADMISSION_GUARDS
from tests.guards.alert_guards import ALERT_GUARDS
from tests.guards.copies import Copy, own_copy
from tests.guards.crowd_guards import CROWD_GUARDS
from tests.guards.decision_guards import DECISION_GUARDS
from tests.guards.door_guards import DOOR_GUARDS
from tests.guards.edge_guards import EDGE_GUARDS
from tests.guards.fact_guards import FACT_GUARDS
from tests.guards.flow_guards import FLOW_GUARDS
from tests.guards.ground_guards import GROUND_GUARDS
from tests.guards.guard import Guard, Stale
from tests.guards.hearing_guards import HEARING_GUARDS
from tests.guards.issuer_guards import ISSUER_GUARDS
from tests.guards.receipt_guards import RECEIPT_GUARDS
from tests.guards.replay_guards import REPLAY_GUARDS
from tests.guards.retention_guards import RETENTION_GUARDS
from tests.guards.secret_guards import SECRET_GUARDS
from tests.guards.sending_guards import SENDING_GUARDS
from tests.guards.store_guards import STORE_GUARDS
from tests.guards.sweep_guards import SWEEP_GUARDS
from tests.guards.trail_guards import TRAIL_GUARDS

GUARDS: tuple[Guard, ...] = (
    *STORE_GUARDS,
    *FLOW_GUARDS,
    *RECEIPT_GUARDS,
    *REPLAY_GUARDS,
    *TRAIL_GUARDS,
    *EDGE_GUARDS,
    *DECISION_GUARDS,
    *FACT_GUARDS,
    *DOOR_GUARDS,
    *ISSUER_GUARDS,
    *SECRET_GUARDS,
    *HEARING_GUARDS,
    *SENDING_GUARDS,
    *SWEEP_GUARDS,
    *GROUND_GUARDS,
    *ADMISSION_GUARDS,
    *ALERT_GUARDS,
    *RETENTION_GUARDS,
    *CROWD_GUARDS,
)
SIDE_BY_SIDE = 2


class Verdict(StrEnum):
    """What became of a broken guard; all but `noticed` are failures of the table or a test."""

    NOTICED = "noticed"
    UNNOTICED = "UNNOTICED"
    STALE = "STALE"
    """The place to break is not where the table says."""
    TROUBLE = "TROUBLE"
    """The test did not come to run: no statement about the guard."""


@dataclass(frozen=True)
class Result:
    """What one run of a guard's test came to. `said` is the first line of what it said."""

    guard: str
    promise: str
    test: str
    verdict: Verdict
    said: str
    took_s: float


def try_guard(copy: Copy, guard: Guard) -> Result:
    """Break one guard and run its test."""
    began = time.monotonic()
    try:
        with copy.broken(guard):
            whole = not guard.broken_by.path.startswith("migrations/")
            cases = copy.run([guard.test], schema_is_whole=whole)
    except Stale as stale:
        return result(guard, Verdict.STALE, str(stale), began)
    if cases.failed:
        return result(guard, Verdict.NOTICED, cases.failed[0], began)
    if cases.broken or not cases.passed:
        said = cases.broken[0] if cases.broken else "no such test"
        return result(guard, Verdict.TROUBLE, said, began)
    return result(guard, Verdict.UNNOTICED, "the test passed", began)


def result(guard: Guard, verdict: Verdict, said: str, began: float) -> Result:
    """The outcome with the time that it took."""
    took_s = round(time.monotonic() - began, 1)
    return Result(guard.name, guard.promise, guard.test, verdict, said, took_s)


def try_all(guards: Sequence[Guard]) -> list[Result]:
    """Break each guard by itself, two at a time; results in the order of the guards."""
    with ExitStack() as stack:
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for _ in range(min(SIDE_BY_SIDE, len(guards))):
            free.put(stack.enter_context(own_copy()))

        def work(guard: Guard) -> Result:
            copy = free.get()
            try:
                tried = try_guard(copy, guard)
            finally:
                free.put(copy)
            sys.stderr.write(f"{line(tried)}\n")
            return tried

        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return list(pool.map(work, guards))


def red_without_mutant(guards: Sequence[Guard]) -> list[str]:
    """Tests that fail although nothing is broken: their redness would say nothing."""
    with own_copy() as copy:
        cases = copy.run(sorted({guard.test for guard in guards}))
    return [*cases.failed, *cases.broken] or ([] if cases.passed else ["no test ran"])


def table(results: Iterable[Result]) -> str:
    """The results for people, the worst first."""
    rows = sorted(results, key=lambda each: (each.verdict is Verdict.NOTICED, each.promise))
    noticed = sum(each.verdict is Verdict.NOTICED for each in rows)
    lines = [line(each) for each in rows]
    return "\n".join([*lines, f"{noticed} of {len(rows)} broken guards were noticed"])


def line(result: Result) -> str:
    """One result for people."""
    told = f"{result.verdict:<10} {result.promise:<4} {result.took_s:5.1f} s"
    return f"{told}  {result.guard}: {result.said}"


def main(names: Sequence[str]) -> int:
    """Try the guards whose name holds one of `names`, or all of them."""
    chosen = [each for each in GUARDS if not names or any(name in each.name for name in names)]
    red = red_without_mutant(chosen)
    results = try_all(chosen)
    out = {"red_without_mutant": red, "results": [asdict(each) for each in results]}
    sys.stdout.write(f"{table(results)}\n{json.dumps(out, indent=1)}\n")
    for each in red:
        sys.stdout.write(f"red although nothing is broken: {each}\n")
    return 1 if red or any(each.verdict is not Verdict.NOTICED for each in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
