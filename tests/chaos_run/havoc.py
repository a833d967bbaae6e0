"""Breaks things while the senders post: processes, the Postgres, and the ways between them.

A kill counts as *in flight* only with a proof by rows. Just before the signal, the attempts
without an outcome whose owner is the process about to die are read; once the process is gone
they are read again. An attempt that stands in both was committed before the kill and had no
outcome after it; only its owner commits an intent, and an outcome is never taken back, so at
the moment of the kill the call was owed and its answer was nowhere written. A kill without
such an attempt, or during which the rows could not be read, is not counted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event as Flag

from tests.chaos.conftest import Cluster
from tests.chaos_run.fleet import Fleet, Member
from tests.chaos_run.ground import Ground
from tests.chaos_run.plan import Plan
from tests.chaos_run.relay import Relay
from tests.chaos_run.senders import Senders

TICK_S = 0.03
TELL_EVERY_S = 60.0
CHILD, FREEZE = 0.15, 0.12
FREEZES_S = (0.5, 7.0)
DOWN_S = (0.5, 2.0)
CALM_S = (4.0, 12.0)
AHEAD = 0.03
"""By which share of all events the senders may be ahead of the kills."""

InFlight = Callable[[tuple[int, ...]], set[str]]
"""The references of the open attempts of a process; empty where that cannot be read."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One SIGKILL, in Unix time; `in_flight` are the attempts that it is proven to have hit."""

    at: float
    pids: tuple[int, ...]
    child: bool
    in_flight: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outage:
    """Something that could not be reached, in Unix time."""

    what: str
    begin: float
    end: float


@dataclass(slots=True)
class Havoc:
    """The breaking side of one run."""

    plan: Plan
    ground: Ground
    fleet: Fleet
    senders: Senders
    in_flight: InFlight
    chance: random.Random
    say: Callable[[str], None]
    enough: Flag
    """Set from outside to come to an end before all is done."""
    kills: list[Kill] = field(default_factory=list)
    restarts: list[Outage] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    _aims: dict[int, float] = field(default_factory=dict)
    _down: list[tuple[Relay, str, float, float]] = field(default_factory=list)
    _calm_until: float = 0.0

    def wreak(self) -> None:
        """Until everything is posted and everything that was planned has been broken."""
        pause, told_at = Flag(), time.monotonic()
        while not self.enough.is_set() and not self._done():
            self.fleet.tend()
            self._let_senders_go_on()
            self._restart_if_due()
            self._trouble_the_ways()
            if len(self.kills) < self.plan.kills:
                self._hunt()
            if time.monotonic() - told_at > TELL_EVERY_S:
                told_at = time.monotonic()
                self.say(f"{self.senders.posted} events, {len(self.kills)} kills")
            pause.wait(TICK_S)
        self.fleet.wake_all()
        self._mend_the_ways(time.monotonic(), everything=True)
        while len(self.restarts) < self.plan.restarts and not self.enough.is_set():
            self._restart()

    def _done(self) -> bool:
        return self.senders.done() and len(self.kills) >= self.plan.kills

    def _let_senders_go_on(self) -> None:
        """Events come in step with the kills, and when one is due, so that it meets work."""
        share = (len(self.kills) + len(self._aims)) / max(self.plan.kills, 1)
        self.senders.allowed = self.plan.events * (share + AHEAD)
        if len(self.kills) >= self.plan.kills:
            self.senders.allowed = self.plan.events

    # processes

    def _hunt(self) -> None:
        if len(self.kills) > self.plan.kills * self.senders.posted / self.plan.events:
            return  # kills come in step with the events, too
        now = time.monotonic()
        victims = self.fleet.victims()
        self._aims = {id(each): self._aims.get(id(each), now) for each in victims}
        for member in victims:
            waited = now - self._aims[id(member)] > self.plan.aim_s
            if waited or self.in_flight(member.pids):
                self._strike(member)
                return

    def _strike(self, member: Member) -> None:
        if self.chance.random() < FREEZE:
            self.fleet.freeze(member, self.chance.uniform(*FREEZES_S))
            return
        child = self.chance.random() < CHILD
        pids, before = member.pids, self.in_flight(member.pids)
        at = time.time()
        self.fleet.kill(member, child=child)
        after = self.in_flight(pids)
        self.kills.append(Kill(at, pids, child, frozenset(before & after)))

    # the Postgres

    def _restart_if_due(self) -> None:
        share = len(self.kills) / max(self.plan.kills, 1)
        if share > (len(self.restarts) + 0.5) / max(self.plan.restarts, 1):
            self._restart()

    def _restart(self) -> None:
        """In turn as a crash and as an administrator does; it stays away for a moment."""
        cluster: Cluster = self.ground.arena.cluster
        begin, crash = time.time(), len(self.restarts) % 2 == 0
        (cluster.kill if crash else cluster.stop)()
        Flag().wait(self.chance.uniform(*DOWN_S))
        cluster.start()
        what = "killed" if crash else "stopped"
        self.restarts.append(Outage(f"Postgres {what}", begin, time.time()))

    # the ways between

    def _ways(self) -> Iterator[tuple[Relay, str]]:
        yield self.ground.to_mail, self.plan.mail
        yield self.ground.to_twilio, "twilio"
        yield self.ground.to_auth, "links"

    def _trouble_the_ways(self) -> None:
        now = time.monotonic()
        self._mend_the_ways(now)
        if self._down or now < self._calm_until:
            return
        self._calm_until = now + self.chance.uniform(*CALM_S)
        relay, name = self.chance.choice(list(self._ways()))
        kind = self.chance.choice(("refused", "cut", "both"))
        if kind != "refused" and relay.cut():
            at = time.time()
            self.outages.append(Outage(f"{name} cut", at, at))
        if kind != "cut":
            relay.refuse()
            until = now + self.chance.uniform(*DOWN_S)
            self._down.append((relay, name, time.time(), until))

    def _mend_the_ways(self, now: float, *, everything: bool = False) -> None:
        for down in list(self._down):
            relay, name, begin, until = down
            if everything or now >= until:
                relay.reopen()
                self._down.remove(down)
                self.outages.append(Outage(f"{name} down", begin, time.time()))
