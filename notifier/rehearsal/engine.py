"""Runs one script on a virtual clock: who acts when, and what they then do.

A discrete-event simulation. Workers pick up what is due, sweeps run on the grid of the
policy's own period, providers answer as scripted; each happening is one function of `starts`,
`facts` or `sweeps`. Nothing here waits, and the same script under the same policy always gives
the same trail.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final

from notifier.domain.call_limits import RESCUE_GRACE
from notifier.domain.outcome import Outcome
from notifier.domain.policy import Policy
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel, DeliveryState
from notifier.rehearsal import facts, starts, sweeps
from notifier.rehearsal.acts import REQUESTED_AT, Act, Rehearsed
from notifier.rehearsal.facts import News
from notifier.rehearsal.notice import Attempt, Delivery, Notice, admitted
from notifier.rehearsal.pauses import Pauses
from notifier.rehearsal.script import Halt, Report, Script
from notifier.rehearsal.surroundings import awake, link_trouble, moment_of, outcome_of, seen_by

_S = DeliveryState
_LEAST: Final = timedelta(microseconds=1)
_WAITS_FOR_CLOCK: Final = frozenset({_S.STANDBY, _S.QUEUED})


@dataclass(slots=True)
class _Stage:
    """The clock, what is to happen on it, and the notice that it happens to."""

    script: Script
    notice: Notice
    happenings: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)
    begins_at: datetime = REQUESTED_AT
    swept_at: datetime | None = None
    next_sweep: datetime | None = None
    pick_ups: dict[Channel, datetime] = field(default_factory=dict)
    calls: dict[Channel, int] = field(default_factory=dict)
    killed: dict[Channel, int] = field(default_factory=dict)
    pauses: Pauses = field(default_factory=Pauses)
    told: set[tuple[Channel, int, ReceiptStatus]] = field(default_factory=set)

    # --- the clock

    def at(self, moment: datetime, do: Callable[[], None]) -> None:
        """Have `do` happen at `moment`, after whatever was planned for it before."""
        heapq.heappush(self.happenings, (moment, next(self.numbers), do))

    def run(self) -> None:
        """Let everything happen, and what follows from it."""
        self._plan()
        while self.happenings:
            moment, _, do = heapq.heappop(self.happenings)
            self.notice.now = max(moment, self.notice.now)
            do()
            self._plan()

    def did(
        self, name: str, channel: Channel | None = None, number: int = 0, what: Any = None
    ) -> None:
        """Remember what was done."""
        self.acts.append(Act(self.notice.now, name, channel, number, what))

    # --- what is due next

    def _plan(self) -> None:
        for delivery in self.notice.deliveries.values():
            if delivery.state is _S.QUEUED or delivery.replay_due_at is not None:
                self._plan_pick_up(delivery)
        due = [*self._deadlines(), *self._looks_due()]
        if due:
            self._plan_sweep(min(due))

    def _plan_pick_up(self, delivery: Delivery) -> None:
        channel = delivery.channel
        if not starts.is_free(self.notice, channel):
            return  # whatever frees it is a happening of its own
        due = delivery.due_at if delivery.state is _S.QUEUED else delivery.replay_due_at
        begin = max(due or self.notice.now, self.notice.now, *self._pause(channel))
        moment = begin + timedelta(seconds=self.script.channel(channel).pick_up_s)
        moment = awake(self.script, moment)
        planned = self.pick_ups.get(channel)
        if moment < delivery.stop_at and (planned is None or moment < planned):
            self.pick_ups[channel] = moment
            self.at(moment, lambda: self._pick_up(channel, moment))

    def _pause(self, channel: Channel) -> list[datetime]:
        until = self.pauses.ends.get(channel)
        return [until] if until else []

    def _plan_sweep(self, due: datetime) -> None:
        """At the next beat of the sweeps' period, and never twice at the same one."""
        if self.next_sweep is not None and self.next_sweep <= due:
            return
        period = max(timedelta(seconds=self.notice.policy.sweep_every_s), _LEAST)
        due = awake(self.script, max(due, self.notice.now))
        beats = -((self.begins_at - due) // period)
        if self.swept_at is not None and self.begins_at + beats * period <= self.swept_at:
            beats += 1
        moment = awake(self.script, self.begins_at + beats * period)
        if self.next_sweep is None or moment < self.next_sweep:
            self.next_sweep = moment
            self.at(moment, lambda: self._sweep(moment))

    def _looks_due(self) -> Iterator[datetime]:
        for delivery in self.notice.deliveries.values():
            if delivery.next_check_at and delivery.next_check_at < self.notice.expires_at:
                yield delivery.next_check_at

    def _deadlines(self) -> Iterator[datetime]:
        """When a sweep would next find something to do but to look."""
        if fallback_due := self._fallback_due():
            yield fallback_due
        for delivery in self.notice.deliveries.values():
            if delivery.state in _WAITS_FOR_CLOCK:
                yield delivery.stop_at
            if delivery.state is _S.UNKNOWN:
                yield self.notice.expires_at
            if delivery.state is _S.ACCEPTED and not delivery.final_acceptance:
                yield self.notice.expires_at
            if delivery.lease_until is not None:
                yield delivery.lease_until + RESCUE_GRACE + _LEAST

    def _fallback_due(self) -> datetime | None:
        """As the fallback sweep picks its notices: none that has nothing to decide."""
        notice = self.notice
        email, sms = notice.deliveries[Channel.EMAIL], notice.deliveries[Channel.SMS]
        undecided = sms.state is _S.STANDBY and notice.fallback_at is not None
        if not undecided or notice.is_halted(Channel.SMS) or notice.now >= sms.stop_at:
            return None
        held = notice.hold_noted and email.state in (_S.UNKNOWN, _S.ACCEPTED)
        arrived = email.state is _S.DELIVERED or email.final_acceptance
        if held or arrived or notice.canceled or sms.attempts:
            return None
        busy_until = email.lease_until if email.state is _S.ATTEMPTED else None
        return max(notice.fallback_at or notice.now, busy_until or notice.now)

    # --- our processes

    def _sweep(self, planned: datetime) -> None:
        if self.next_sweep != planned:
            return
        self.next_sweep, self.swept_at = None, self.notice.now
        if any(due <= self.notice.now for due in self._deadlines()):
            self.did("sweep")
            self.notice.open()
            sweeps.rescue(self.notice)
            self.notice.settle()
        for state in (_S.ACCEPTED, _S.UNKNOWN):
            for delivery in self.notice.deliveries.values():
                due = delivery.next_check_at
                if (
                    delivery.state is state
                    and due
                    and due <= self.notice.now < self.notice.expires_at
                ):
                    self._look(delivery)

    def _pick_up(self, channel: Channel, planned: datetime) -> None:
        if self.pick_ups.get(channel) != planned:
            return
        del self.pick_ups[channel]
        notice, script = self.notice, self.script.channel(channel)
        repeats = starts.may_claim_replay(notice, channel)
        is_over = self.pauses.is_over(channel, notice.now)
        if not is_over or not (repeats or starts.may_claim(notice, channel)):
            return
        step = starts.claim_replay if repeats else starts.claim
        fence = step(notice, channel).fence
        turn = self.pauses.take_turn(channel, notice.policy, notice.now)
        self.did("claim_replay" if repeats else "claim", channel)
        if self.killed.setdefault(channel, script.killed_claims) > 0:
            self.killed[channel] -= 1
            return
        later = notice.now + timedelta(seconds=script.link_s)
        self.at(later, lambda: self._link(channel, fence, turn, repeats=repeats))

    def _give_turn_back(self, channel: Channel, turn: datetime | None) -> None:
        if self.pauses.give_back(channel, turn, self.notice.now):
            self.did("give_turn_back", channel)

    def _link(self, channel: Channel, fence: int, turn: datetime | None, *, repeats: bool) -> None:
        attempt = self._start(channel, fence, turn, repeats=repeats)
        if attempt:
            self._call(attempt, turn, is_replay=repeats)
        else:
            self._give_turn_back(channel, turn)

    def _start(
        self, channel: Channel, fence: int, turn: datetime | None, *, repeats: bool
    ) -> Attempt | None:
        trouble = link_trouble(self.script, self.notice.now)
        if repeats:
            return None if trouble else self._start_replay(channel, fence)
        if trouble is not None:
            self.did("no_link", channel, what=trouble.answer)
            starts.no_link(self.notice, channel, fence, trouble.answer)
            return None
        self.did("intent", channel)
        shut = self.pauses.is_shut(channel, turn)
        return starts.intent(self.notice, channel, fence, paused=shut)

    def _start_replay(self, channel: Channel, fence: int) -> Attempt | None:
        self.did("start_replay", channel)
        return starts.start_replay(self.notice, channel, fence)

    # --- providers

    def _call(self, attempt: Attempt, turn: datetime | None, *, is_replay: bool) -> None:
        channel, script = attempt.channel, self.script.channel(attempt.channel)
        number = self.calls[channel] = self.calls.get(channel, 0) + 1
        call = script.calls[min(number, len(script.calls)) - 1]
        begun = self.notice.now
        ends, outcome = outcome_of(call, begun, attempt.deadline)
        if outcome is not None:
            self.at(ends, lambda: self._answer(attempt, turn, outcome, is_replay=is_replay))
        for report in script.reports:
            if report.call == number:
                self._await(attempt, report, begun)

    def _await(self, attempt: Attempt, report: Report, begun: datetime) -> None:
        later = begun + timedelta(seconds=report.after_s)
        seen = None
        if report.occurred_s is not None:
            seen = begun + timedelta(seconds=report.occurred_s)
        news = News(report.status, report.detail, seen)
        self.at(later, lambda: self._tell(attempt, news))

    def _answer(
        self, attempt: Attempt, turn: datetime | None, outcome: Outcome, *, is_replay: bool
    ) -> None:
        policy, now = self.notice.policy, self.notice.now
        self.pauses.hear(attempt.channel, turn, outcome, policy, now)
        name = "replay_answer" if is_replay else "answer"
        self.did(name, attempt.channel, attempt.number, outcome)
        facts.answer(self.notice, attempt, outcome, is_replay=is_replay)
        self._give_turn_back(attempt.channel, turn)

    def _tell(self, attempt: Attempt, news: News) -> None:
        self.did("tell", attempt.channel, attempt.number, news)
        facts.receipt(self.notice, attempt, news, asked=False)

    def _found(self, attempt: Attempt, news: News) -> None:
        key = (attempt.channel, attempt.number, news.status)
        if key not in self.told:  # the same thing looked up again is stored once
            self.told.add(key)
            facts.receipt(self.notice, attempt, news, asked=True)

    def _look(self, delivery: Delivery) -> None:
        channel, unknown = delivery.channel, delivery.state is _S.UNKNOWN
        attempt = [each for each in self.notice.attempts if each.channel is channel][-1]
        sweeps.push_look(self.notice, delivery)
        kind = self.script.channel(channel).kind
        if unknown and kind.finds == "replay":
            self.did("look", channel, attempt.number)
            sweeps.authorise(self.notice, channel)
            return
        if not unknown and not (kind.can_poll and attempt.message_known):
            return
        seen = seen_by(self.script, attempt, self.notice.now)
        self.did("look", channel, attempt.number, seen)
        if seen.found not in ("not_found", "cannot_tell"):
            self._found(attempt, News(ReceiptStatus(seen.found), seen.detail))
        elif unknown:
            sweeps.found_nothing(self.notice, channel, seen)

    # --- people and the auth service

    def surround(self) -> None:
        """Plan what happens whatever the notice does."""
        for halt in self.script.halts:
            self._plan_halt(halt)
        for each in self.script.cancels:
            why = each.why
            self.at(moment_of(each.at_s), lambda why=why: self._cancel(why))  # type: ignore[misc]

    def _plan_halt(self, halt: Halt) -> None:
        if moment_of(halt.from_s) <= self.notice.now:
            self._engage(halt.scope)
        else:
            self.at(moment_of(halt.from_s), lambda: self._engage(halt.scope))
        if halt.until_s is not None:
            self.at(moment_of(halt.until_s), lambda: self._release(halt.scope))

    def _engage(self, scope: str) -> None:
        self.did("halt", what=scope)
        self.notice.halts.add(scope)

    def _release(self, scope: str) -> None:
        self.did("release", what=scope)
        self.notice.halts.discard(scope)

    def _cancel(self, why: str) -> None:
        self.did("cancel", what=why)
        self.notice.open()
        facts.cancel(self.notice, why)
        self.notice.settle()


def rehearse(script: Script, policy: Policy) -> Rehearsed:
    """Let one notice live its whole life, and what is told of it afterwards."""
    notice = admitted(script, policy, REQUESTED_AT)
    stage = _Stage(script, notice, begins_at=notice.now)
    stage.did("admit")
    stage.surround()
    stage.run()
    return Rehearsed(notice, tuple(stage.acts))
