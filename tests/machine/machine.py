"""The state machine: whatever may happen to a few notices, in any order."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import timedelta
from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis import note
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.machine import looks, openings, twins
from tests.machine.example import Edge, Worker
from tests.machine.ground import Ground
from tests.machine.openings import words
from tests.machine.pair import Pair

WHICH = st.integers(0, 7)
CHANNELS = st.sampled_from(["email", "sms"])
STATUSES = st.sampled_from(
    ["accepted", "delivered", "failed", "delayed", "information", "unmapped"]
)
SAID = st.sampled_from(["accepted", "delivered", "failed", "delayed", "nothing", "cannot"])
SCOPES = (
    "all",
    "channel:email",
    "channel:sms",
    "provider:twilio",
    "provider:postmark",
    "template:password-reset@1",
    "template:password-reset@2",
    "account",
    "event",
)
LINKS = (
    "unavailable",
    "unavailable",
    "no_destination",
    "not_permitted",
    "invalid_destination",
    "gone-used",
    "gone-revoked",
    "gone-superseded",
    "gone-expired",
)


class NoticeMachine(RuleBasedStateMachine):
    """One example over one of the grounds; `grounds` and `edges` are set by whoever runs it."""

    grounds: ClassVar[list[Ground]]
    edges: ClassVar[Counter[Edge]]
    examples: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.pair: Pair | None = None

    @property
    def p(self) -> Pair:
        assert self.pair is not None
        return self.pair

    @initialize(
        name=st.sampled_from(sorted(openings.OPENINGS)),
        kind=st.integers(0, 59),
        salt=st.integers(0, 59),
    )
    def open(self, name: str, kind: int, salt: int) -> None:
        cls = type(self)
        cls.examples += 1
        chosen = openings.OPENINGS[name]
        ground = cls.grounds[chosen.kinds[kind % len(chosen.kinds)]]
        note(f"surroundings: {ground.kind.name}")
        self.pair = Pair(ground, cls.edges)
        chosen.act(self.pair, salt)

    def teardown(self) -> None:
        # An example that failed, or that was broken off, has no end to check.
        if self.pair is not None and sys.exc_info()[0] is None:
            self.pair.finish()

    @invariant()
    def the_same_on_both_sides(self) -> None:
        if self.pair is not None:
            self.pair.compared()

    def _worker(self, which: int, *stages: str) -> Worker | None:
        fit = [each for each in self.p.workers if not stages or each.stage in stages]
        return fit[which % len(fit)] if fit else None

    # --- work

    @precondition(lambda self: len(self.p.notices) < 3)
    @rule(
        life=st.sampled_from([150.0, 300.0, 600.0, 900.0]),
        late=st.sampled_from([0.0, 0.0, 5.0, 100.0]),
        mode=st.sampled_from(["email_then_sms", "email_then_sms", "parallel", "sms_only"]),
        account=st.integers(0, 1),
        supersedes=st.booleans(),
    )
    def admit(self, life: float, late: float, mode: str, account: int, supersedes: bool) -> None:
        self.p.admit(
            life, late, mode=mode, account=account, supersedes_earlier=supersedes, region="GB"
        )

    @precondition(lambda self: self.p.notices and not self.p.workers)
    @rule(which=WHICH, other=st.booleans())
    def admit_again(self, which: int, other: bool) -> None:
        notices = self.p.notices
        self.p.admit_again(notices[which % len(notices)], other_content=other)

    @rule(channel=CHANNELS, slots=st.integers(1, 3), owner=st.integers(1, 3))
    def claim(self, channel: str, slots: int, owner: int) -> None:
        self.p.claim(channel, slots, f"worker-{owner}")

    @precondition(lambda self: self.p.workers)
    @rule(which=WHICH, steps=st.integers(1, 5), result=st.integers(0, 9), no_line=st.booleans())
    def go_on(self, which: int, steps: int, result: int, no_line: bool) -> None:
        """A worker takes some of its steps, and stops again wherever that is."""
        worker = self._worker(which)
        for _ in range(steps):
            if worker is None or worker not in self.p.workers:
                return
            self._one_step(worker, result, no_line=no_line and result > 5)

    def _one_step(self, worker: Worker, result: int, *, no_line: bool) -> None:
        match worker.stage:
            case "claimed":
                self.p.link(worker)
            case "linked":
                self.p.ground.digest = "01" if worker.claim.repeats and result == 9 else "00"
                self.p.render(worker)
                self.p.ground.digest = "00"
            case "rendered":
                self.p.intend(worker, no_line=no_line)
            case "started":
                assert worker.started is not None
                reports = self.p.ground.kind.reports[worker.channel]
                reference = worker.started.reference if reports else ""
                self.p.call(worker, words.outcome(result, reference))
            case _:
                self.p.record(worker)

    @precondition(lambda self: any(each.stage == "claimed" for each in self.p.workers))
    @rule(
        which=WHICH,
        says=st.sampled_from(LINKS),
        skew=st.sampled_from([0.0, 0.0, -300.0, 300.0]),
        cut=st.sampled_from([None, None, 20.0, 90.0, 250.0]),
        moved=st.booleans(),
        granted=st.booleans(),
    )
    def odd_link(
        self, which: int, says: str, skew: float, cut: float | None, moved: bool, granted: bool
    ) -> None:
        worker = self._worker(which, "claimed")
        assert worker is not None
        if granted:
            self.p.link(worker, skew=skew, cut=cut, moved=moved)
        else:
            self.p.link(worker, says, skew=skew)

    @precondition(lambda self: any(each.stage != "called" for each in self.p.workers))
    @rule(which=WHICH, how=st.sampled_from(["shut_down", "fault", "render", "vanish"]))
    def trouble(self, which: int, how: str) -> None:
        """A worker is told to stop, meets a fault of ours, or is never heard of again."""
        match how:
            case "shut_down" if worker := self._worker(which, "claimed"):
                self.p.shut_down(worker)
            case "fault" if worker := self._worker(which, "claimed", "linked", "rendered"):
                self.p.fault(worker)
            case "render" if worker := self._worker(which, "linked"):
                self.p.render(worker, fails=True)
            case "vanish" if worker := self._worker(which):
                self.p.workers.remove(worker)
            case _:
                pass

    # --- receipts and looks

    @precondition(lambda self: self.p.attempts())
    @rule(
        which=WHICH,
        status=STATUSES,
        how=st.sampled_from(["both", "id", "reference"]),
        ago=st.sampled_from([None, 0.0, 3.5, 200.0]),
        parked=st.booleans(),
    )
    def tell(self, which: int, status: str, how: str, ago: float | None, parked: bool) -> None:
        attempts = self.p.attempts()
        attempt = attempts[-1 - which % len(attempts)][2]
        self.p.tell(attempt, status, how, ago=ago, parked=parked)

    @precondition(lambda self: self.p.receipts)
    @rule(which=WHICH)
    def tell_again(self, which: int) -> None:
        self.p.tell_again(which)

    @rule(says=SAID, wait=st.booleans())
    def poll(self, says: str, wait: bool) -> None:
        if wait:
            looks.to_next_look(self.p, "accepted")
        looks.poll(self.p, says)

    @rule(
        says=SAID,
        wait=st.booleans(),
        link=st.sampled_from(["granted", "granted", "moved", "unavailable", "gone-used"]),
        times=st.sampled_from([1, 1, 5]),
    )
    def reconcile(self, says: str, wait: bool, link: str, times: int) -> None:
        for _ in range(times):
            if wait and not looks.to_next_look(self.p, "unknown"):
                return
            looks.reconcile(self.p, says, link)

    # --- sweeps and people

    @rule(name=st.sampled_from(["rescue", "expiry", "fallback", "receipts"]))
    def sweep(self, name: str) -> None:
        self.p.sweep(name)

    @precondition(lambda self: self.p.notices)
    @rule(which=WHICH, why=st.sampled_from(words.WHYS))
    def cancel(self, which: int, why: str) -> None:
        notices = self.p.notices
        self.p.cancel(notices[which % len(notices)], why)

    @precondition(lambda self: self.p.notices and len(self.p.world.halts) < 2)
    @rule(which=WHICH, scope=st.sampled_from(SCOPES))
    def halt(self, which: int, scope: str) -> None:
        notice = self.p.notices[which % len(self.p.notices)]
        named = {"account": f"account:{notice.account}", "event": f"event:{notice.event}"}
        self.p.halt(named.get(scope, scope))

    @precondition(lambda self: self.p.world.halts)
    @rule()
    def release(self) -> None:
        self.p.release(min(self.p.world.halts))

    # --- time

    @rule(seconds=st.sampled_from([0.4, 1.5, 5.0, 31.0, 65.0, 200.0]))
    def wait(self, seconds: float) -> None:
        self.p.jump(seconds)

    @precondition(lambda self: self.p.notices)
    @rule(which=WHICH, point=WHICH, off=st.sampled_from([-1.0, 0.0, 0.0, 1.0, 3.0]))
    def jump(self, which: int, point: int, off: float) -> None:
        """To one of the moments at which something changes, or just beside it."""
        points = sorted(self._points(which))
        later = [each for each in points if each + timedelta(seconds=off) > self.p.now]
        if later:
            self.p.ground.go_to(later[point % len(later)] + timedelta(seconds=off))

    def _points(self, which: int) -> set[Any]:
        notice = self.p.notices[which % len(self.p.notices)]
        points = {notice.expires_at, notice.fallback_at}
        for each in notice.both:
            points |= {each.stop_at, each.due_at, each.lease_until}
            points |= {attempt.deadline for attempt in each.attempts}
        return {each for each in points if each is not None}

    # --- P12

    @precondition(lambda self: len(self.p.notices) < 4)
    @rule(
        answer=st.sampled_from(twins.ANSWERS),
        told=st.lists(st.sampled_from(twins.TOLD), max_size=4),
        orders=st.tuples(st.randoms(use_true_random=False), st.randoms(use_true_random=False)),
        channel=CHANNELS,
    )
    def twins(self, answer: str, told: list[str], orders: Any, channel: str) -> None:
        twins.same_whatever_the_order(self.p, answer, told, orders, channel)
