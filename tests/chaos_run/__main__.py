"""`make chaos`: the long run. Exit 1 where a promise was broken.

    python -m tests.chaos_run --events 300 --kills 10 --restarts 1

The seed is printed; the same seed gives the same people, faults and choices, though not the
same interleaving. SIGUSR1 ends a run early, with the figures so far.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from peers.app_process import ROOT
from tests.chaos_run.plan import LIVES, MAIL_FAULTS, SHORT_LIVES, Plan
from tests.chaos_run.run import enough, run, run_plain, say
from tests.network import keep_to_loopback


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, keep; what to exit with."""
    chosen = _parser().parse_args(arguments)
    keep_to_loopback()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    signal.signal(signal.SIGUSR1, lambda *_: enough.set())
    folder = chosen.folder or ROOT / "bench-results"
    kept = [_one(plan, folder, chosen.only) for plan in _plans(chosen)]
    return 0 if all(kept) else 1


def _one(plan: Plan, folder: Path, only: str | None) -> bool:
    """One run: printed, kept, and whether every promise was."""
    say(f"seed {plan.seed}, mail through {plan.mail}")
    if only == "plain":
        report = run_plain(plan)
    else:
        report = run(plan, beside=plan.mail == "postmark" and only is None)
    name = "plain" if only == "plain" else plan.mail
    path = folder / f"chaos-{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    report.keep(path)
    sys.stdout.write(f"{report.text()}\n\nseed {plan.seed}, mail through {plan.mail}: {path}\n\n")
    sys.stdout.flush()
    return report.holds


def _plans(chosen: argparse.Namespace) -> list[Plan]:
    """The run that was asked for; without a provider named, tenths of it through the others."""
    first = Plan(
        events=chosen.events,
        kills=chosen.kills,
        restarts=chosen.restarts,
        processes=chosen.processes,
        workers=chosen.workers,
        rate=chosen.rate,
        seed=chosen.seed,
        mail=chosen.mail or "postmark",
        lives=SHORT_LIVES if chosen.short_lives else LIVES,
    )
    if chosen.mail or chosen.only == "plain":
        return [first]
    tenth = replace(first, events=first.events // 10, kills=first.kills // 10, restarts=1)
    return [first, replace(tenth, mail="smtp"), replace(tenth, mail="resend")]


def _end(_number: int, _frame: FrameType | None) -> None:
    """Everything that was started is stopped on the way out, which nothing more interrupts."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    usual = Plan()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos_run")
    parser.add_argument("--events", type=int, default=usual.events)
    parser.add_argument("--kills", type=int, default=usual.kills)
    parser.add_argument("--restarts", type=int, default=usual.restarts, help="of Postgres")
    parser.add_argument("--processes", type=int, default=usual.processes)
    parser.add_argument("--workers", type=int, default=usual.workers, help="of each process")
    parser.add_argument("--rate", type=float, default=usual.rate, help="events a second at most")
    parser.add_argument("--seed", type=int, default=int(datetime.now(UTC).timestamp()) % 100_000)
    parser.add_argument("--mail", choices=tuple(MAIL_FAULTS), help="this provider alone")
    parser.add_argument("--short-lives", action="store_true", help="events of at most 18 s")
    parser.add_argument("--only", choices=("product", "plain"), help="one of the two alone")
    parser.add_argument("--folder", type=Path, help="where to keep the figures as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
