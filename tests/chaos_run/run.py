"""One run: both contestants, one after the other, under the same havoc; then the verdict."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from threading import Event as Flag
from typing import Protocol

from tests.chaos_run import trail, verdict
from tests.chaos_run.explain import Causes
from tests.chaos_run.figures import Figure, Report
from tests.chaos_run.fleet import Fleet
from tests.chaos_run.ground import Arena, Ground, breakable, surrounded
from tests.chaos_run.havoc import Havoc
from tests.chaos_run.journals import Seen, mails_seen, texts_seen
from tests.chaos_run.plain import running_plain
from tests.chaos_run.plan import Plan, cases
from tests.chaos_run.product import ATTEMPTS, DELIVERIES, REASONS, Product, running_product
from tests.chaos_run.senders import Line, Senders
from tests.chaos_run.verdict import Book, Found


class Contestant(Protocol):
    """Who is put through it."""

    @property
    def fleet(self) -> Fleet: ...

    def line(self) -> Line: ...

    def in_flight(self, pids: tuple[int, ...]) -> set[str]: ...

    def drain(self) -> tuple[float, float]: ...


@dataclass(frozen=True, slots=True)
class Course:
    """What happened to one contestant, and what was seen of it."""

    havoc: Havoc
    seen: dict[str, Seen]
    idle_after_s: float
    closed_after_s: float
    took_s: float

    @property
    def hits(self) -> int:
        """Kills that are proven to have hit an attempt in flight."""
        return sum(bool(kill.in_flight) for kill in self.havoc.kills)


LOST = "lost: acknowledged, without an end or a reason"


def say(text: str) -> None:
    """One line of progress."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


enough = Flag()
"""Set to end early: what is under way is drained and judged, and what is missing is shown."""


def run_plain(plan: Plan) -> Report:
    """The plain worker alone; nothing is wanted of it."""
    report = Report(asdict(plan))
    with breakable() as arena:
        course, left = through_plain(plan, arena)
    found = {**_counted(course), LOST: left}
    report.figures = [Figure(name, None, value) for name, value in found.items()]
    return report


def run(plan: Plan, *, beside: bool = True) -> Report:
    """The whole run; `beside`: with the plain worker."""
    report = Report(asdict(plan))
    with breakable() as arena:
        plain = through_plain(plan, arena) if beside else None
        with (
            surrounded(arena, "chaos_product", plan.mail) as ground,
            running_product(ground, plan) as ours,
        ):
            course = _through(plan, ground, ours)
            _judge(report, plan, ours, course, plain)
    return report


def through_plain(plan: Plan, arena: Arena) -> tuple[Course, int]:
    """The plain worker's course, and how many of its jobs never came to an end."""
    with (
        surrounded(arena, "chaos_plain", plan.mail) as ground,
        running_plain(ground, plan) as plain,
    ):
        course = _through(plan, ground, plain)
        return course, plain.left()


def _through(plan: Plan, ground: Ground, contestant: Contestant) -> Course:
    begin = time.monotonic()
    name = type(contestant).__name__.lower()
    say(f"{name}: ready after {contestant.fleet.ready_after_s:.1f} s")
    senders = Senders(plan, cases(plan), contestant.line, ground.register)
    chance = random.Random(f"havoc {plan.seed}")
    havoc = Havoc(
        plan, ground, contestant.fleet, senders, contestant.in_flight, chance, say, enough
    )
    with senders.sending():
        havoc.wreak()
    say(f"{name}: all posted, {len(havoc.kills)} kills; draining")
    idle, closed = contestant.drain()
    seen = {"email": mails_seen(ground, plan), "sms": texts_seen(ground)}
    took = time.monotonic() - begin
    say(f"{name}: drained in {closed:.1f} s, {took:.0f} s in all")
    return Course(havoc, seen, idle, closed, took)


def _judge(
    report: Report, plan: Plan, ours: Product, course: Course, plain: tuple[Course, int] | None
) -> None:
    havoc, told = course.havoc, course.havoc.senders.told
    book = Book.of(ours.rows(DELIVERIES), ours.rows(ATTEMPTS), ours.rows(REASONS))
    causes = Causes(
        havoc.kills, ours.fleet.frozen, havoc.restarts, havoc.outages, course.seen, told
    )
    explained, strange = verdict.unknown(book, causes)
    late, frozen_late = verdict.arrived_late(book, course.seen, causes)
    _common(report, course, plain, _promises(plan))
    questions = {
        LOST: verdict.lost(book, told),
        "answered twice, differently": Found(told.contradicted),
        "refused or given up by the sender": Found([*told.refused, *told.given_up]),
        "attempts posted more than once": Found(
            [n for s in course.seen.values() for n in verdict.repeated_on_the_wire(book, s).names]
        ),
        "started after the stop time, by rows": verdict.started_late(book),
        "arrived after expiry, of running processes": late,
        "called sent or unsent against the journal": verdict.told_falsely(book, told, course.seen),
        "unknown at the end, not explained": strange,
    }
    rival = {LOST: plain[1] if plain else None}
    for name, found in questions.items():
        report.figures.append(Figure(name, len(found), rival.get(name), at_most=0))
        if len(found):
            report.broken[name] = found.shown
    if LOST in report.broken:
        report.broken[LOST] = _with_stories(report.broken[LOST], ours)
    _beside_promises(report, plan, book, course, explained, frozen_late)
    _trail(report, ours)
    report.told["why unknown at the end"] = explained
    report.told["how deliveries ended"] = verdict.ends(book)
    report.told["last words of processes that ended by themselves"] = Counter(
        f"{name}: {words}"
        for name, each in (("product", course), ("plain", plain[0] if plain else None))
        if each
        for words in each.havoc.fleet.died_alone
    )
    report.told["what was taken away"] = Counter(
        each.what for each in (*havoc.restarts, *havoc.outages)
    )


def _promises(plan: Plan) -> dict[str, tuple[float | None, float | None]]:
    return {
        "events acknowledged": (plan.events, plan.events),
        "emails doubled": (None, 0),
        "texts doubled": (None, 0),
        "kills": (plan.kills, None),
        "kills that hit an attempt in flight": (plan.kills // 3, None),
        "restarts of Postgres": (plan.restarts, None),
    }


def _common(
    report: Report,
    course: Course,
    plain: tuple[Course, int] | None,
    bounds: dict[str, tuple[float | None, float | None]],
) -> None:
    """Figures that both contestants have, counted in the same way."""
    mine, rival = _counted(course), _counted(plain[0]) if plain else {}
    for name, value in mine.items():
        at_least, at_most = bounds.get(name, (None, None))
        figure = Figure(name, value, rival.get(name), at_least=at_least, at_most=at_most)
        report.figures.append(figure)
    for name, channel in (("emails doubled", "email"), ("texts doubled", "sms")):
        if mine[name]:
            report.broken[name] = verdict.duplicates(course.seen[channel]).shown


def _counted(course: Course) -> dict[str, float | int]:
    havoc, told, seen = course.havoc, course.havoc.senders.told, course.seen
    posts = sum(len(side.posts) for side in seen.values())
    after = verdict.kept_after_expiry(told, seen, verdict.expiries(told))
    return {
        "events acknowledged": len(told.identity),
        "posts by the senders": told.sends,
        "emails kept by the provider": len(seen["email"].kept),
        "texts kept by the provider": len(seen["sms"].kept),
        "calls to providers": posts,
        "calls that met a scripted fault, share": sum(s.faulty for s in seen.values()) / posts,
        "callbacks not taken": sum(side.callbacks_lost for side in seen.values()),
        "emails doubled": len(verdict.duplicates(seen["email"])),
        "texts doubled": len(verdict.duplicates(seen["sms"])),
        "messages kept after expiry": after,
        "people to whom nothing was sent": verdict.nobody_told(told, seen),
        "kills": len(havoc.kills),
        "kills that hit an attempt in flight": course.hits,
        "processes frozen": len(havoc.fleet.frozen),
        "processes that ended by themselves": len(havoc.fleet.died_alone),
        "restarts of Postgres": len(havoc.restarts),
        "start to ready, s": havoc.fleet.ready_after_s,
        "until nothing was overdue, s": course.idle_after_s,
        "until all was closed, s": course.closed_after_s,
        "whole run, s": course.took_s,
    }


def _with_stories(names: Sequence[str], ours: Product) -> list[str]:
    """What was lost, each with its trail: the rows are gone when the run is over."""
    return [line for name in names for line in (name, *ours.story(name.partition(":")[0]))]


def _beside_promises(
    report: Report,
    plan: Plan,
    book: Book,
    course: Course,
    explained: Counter[str],
    frozen_late: Found,
) -> None:
    """The rest of the product's figures. So few events may all come to be known."""
    latest = [late for late, _, _ in verdict.lateness(book, course.seen)]
    mine = max(latest, default=0.0)
    report.figures += [
        Figure("arrived after expiry, of processes that stood still", len(frozen_late)),
        Figure("latest arrival after the stop time, s", mine),
        Figure("attempts", len(book.attempts)),
        Figure("attempts repeated under their key", _replays(book)),
        Figure("unknown at the end, explained", explained.total(), at_least=plan.events // 1000),
    ]


def _replays(book: Book) -> int:
    return sum(row["replay_started_at"] is not None for row in book.attempts.values())


def _trail(report: Report, ours: Product) -> None:
    found = trail.verify(ours.ground.database_url, ours.ground.secrets.checkpoint_key)
    report.figures += [
        Figure("rows of the trail", found.rows, at_least=1),
        Figure("faults in the trail", len(found.faults), at_most=0),
        Figure("notices rebuilt from the trail", found.notices, at_least=1),
        Figure("rebuilt otherwise than stored", len(found.differences), at_most=0),
    ]
    for name, examples in (
        ("faults in the trail", found.faults),
        ("rebuilt otherwise than stored", found.differences),
    ):
        if examples:
            report.broken[name] = examples[: verdict.SHOWN]
