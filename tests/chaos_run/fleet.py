"""The processes that are killed: kept running, watched until ready, and ended at the end.

A process may be killed once it is ready, and not again before at least twice the time that its
kind takes from start to ready. All this happens on one thread, the main one: whoever starts a
leashed process must be alive as long as that process (`peers.leash`).
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from tests.running import RunningApp, until

LOOK_EVERY_S = 0.2
EVENT = re.compile(r'"event": "(\w+)".*"exc_type": "(\w+)"')
READY_LIMIT_S = 90.0
PERIODS = (2.0, 2.6)
"""Between how many times start-to-ready, as its last start took, lie two kills of one process."""


@dataclass(slots=True)
class Member:
    """One process and what is known of its life. Times are monotonic seconds."""

    app: RunningApp
    started_at: float = 0.0
    ready_at: float | None = None
    took_s: float = 0.0
    looked_at: float = 0.0
    killable_at: float = 0.0
    frozen_until: float | None = None
    pids: tuple[int, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether it is ready and not standing still."""
        return self.ready_at is not None and self.frozen_until is None


@dataclass(frozen=True, slots=True)
class Frozen:
    """A process that stood still, in Unix time."""

    pids: tuple[int, ...]
    begin: float
    end: float


@dataclass(slots=True)
class Fleet:
    """All processes of one contestant."""

    members: list[Member]
    chance: random.Random
    ready_after_s: float = 0.0
    """How long the slowest took from start to ready, one after the other, unharmed."""
    frozen: list[Frozen] = field(default_factory=list)
    died_alone: list[str] = field(default_factory=list)
    """The last words of processes that ended although nobody had harmed them."""

    def start_all(self) -> None:
        """Start one after the other until each is ready; measures how long that takes."""
        for member in self.members:
            self._start(member)
            until(partial(self._is_up, member), READY_LIMIT_S, partial(_words, member))
        self.ready_after_s = max(each.took_s for each in self.members)
        for member in self.members:
            self._plan_next(member)

    def tend(self) -> None:
        """Start what is gone, note who is ready, wake who has stood still for long enough."""
        now = time.monotonic()
        for member in self.members:
            if member.frozen_until is not None and now >= member.frozen_until:
                self._wake(member)
            if member.app.ended():
                self.died_alone.append(_last_words(member.app.log))
                self._start(member)
            elif member.ready_at is None and now - member.looked_at >= LOOK_EVERY_S:
                self._look(member)

    def wake_all(self) -> None:
        """Let nobody stand still any longer."""
        for member in self.members:
            if member.frozen_until is not None:
                self._wake(member)

    def all_ready(self) -> bool:
        """Whether every process has been ready since its last start."""
        self.tend()
        return all(member.serves for member in self.members)

    def victims(self) -> list[Member]:
        """Who may be killed or frozen now."""
        now = time.monotonic()
        return [each for each in self.members if each.serves and now >= each.killable_at]

    def kill(self, member: Member, *, child: bool) -> None:
        """SIGKILL the printed pid, or its child alone; returns when both are gone."""
        children = member.app.child_pids()
        _send(children[-1] if child and children else member.app.pid, signal.SIGKILL)
        member.app.wait_until_gone()
        self._start(member)

    def freeze(self, member: Member, seconds: float) -> None:
        """Let the process stand still; `tend` wakes it."""
        for pid in member.pids:
            _send(pid, signal.SIGSTOP)
        member.frozen_until = time.monotonic() + seconds
        now = time.time()
        self.frozen.append(Frozen(member.pids, now, now + seconds))

    def _wake(self, member: Member) -> None:
        for pid in member.pids:
            _send(pid, signal.SIGCONT)
        member.frozen_until = None
        self.frozen = [
            Frozen(each.pids, each.begin, time.time()) if each.pids == member.pids else each
            for each in self.frozen
        ]
        self._plan_next(member)

    def _start(self, member: Member) -> None:
        member.app.start()
        member.started_at, member.ready_at = time.monotonic(), None
        member.frozen_until = None

    def _look(self, member: Member) -> None:
        member.looked_at = time.monotonic()
        if not member.app.readiness()[0]:
            return
        member.ready_at = time.monotonic()
        member.took_s = member.ready_at - member.started_at
        member.pids = (member.app.pid, *member.app.child_pids())
        self._plan_next(member)

    def _plan_next(self, member: Member) -> None:
        took = member.took_s
        begin = max(member.started_at, time.monotonic() - took)
        member.killable_at = begin + took * self.chance.uniform(*PERIODS)

    def _is_up(self, member: Member) -> bool:
        assert not member.app.ended(), f"it ended while starting:\n{member.app.log}"
        self._look(member)
        return member.serves


def _last_words(log: str) -> str:
    """The event and kind of trouble in the last line that names one, else the last line."""
    named = EVENT.findall(log[-8000:])
    said = [line.strip() for line in log[-8000:].splitlines() if line.strip()]
    return " ".join(named[-1]) if named else (said or ["nothing"])[-1][:100]


def _words(member: Member) -> str:
    return f"{member.app.readiness()}\n{member.app.log[-2000:]}"


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def fleet_of(
    apps: Sequence[RunningApp], chance: random.Random, stop: Callable[[RunningApp], None]
) -> Iterator[Fleet]:
    """Start these processes; each is told to stop at the end, whatever happened."""
    with ExitStack() as stack:
        for app in apps:
            stack.callback(stop, app)
        fleet = Fleet([Member(app) for app in apps], chance)
        fleet.start_all()
        yield fleet
