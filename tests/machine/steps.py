"""The six steps (6.1), done to both sides; whoever stops between two of them has crashed."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from notifier.domain.outcome import NotAccepted, Outcome
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel
from notifier.flow import put_back
from notifier.flow.dispatch import SLIPPED_S, Dispatch
from notifier.store.ledger.claim import Claim
from tests.machine.example import Worker
from tests.machine.link_steps import LinkSteps
from tests.machine.model import protocol, replay
from tests.machine.model.facts import Notice


class Steps(LinkSteps):
    """A worker's part; the link request stands apart."""

    def claim(self, channel: str, slots: int = 1, owner: str = "worker-1") -> list[Worker]:
        """Replays come first, on at most half of the slots."""
        self.ground.skew = timedelta(0)
        dispatch = self.ground.worker(owner)
        again = [n for n in self.notices if replay.is_claimable(self.world, n, channel, self.now)]
        can = [n for n in self.notices if protocol.is_claimable(self.world, n, channel, self.now)]
        most = 1 if self._provider(channel) in self.world.pauses else slots
        repeats = min(len(again), (slots + 1) // 2, most)
        taken = dispatch.claim(Channel(channel), slots)
        replays = [each for each in taken if each.repeats]
        firsts = [each for each in taken if not each.repeats]
        assert len(replays) == repeats, f"{len(replays)} replays claimed of {len(again)}"
        left = min(len(can), slots - repeats, most - repeats)
        assert len(firsts) == left, f"{len(firsts)} of {len(can)} claimed"
        _least_validity_first(replays, again)
        _least_validity_first(firsts, can)
        workers = [self._claimed(claim, dispatch, owner, again + can) for claim in taken]
        self.workers += workers
        self.compare()
        return workers

    def _claimed(
        self, claim: Claim, dispatch: Dispatch, owner: str, permitted: list[Notice]
    ) -> Worker:
        notice = self._named(claim.notice_id)
        assert notice in permitted, "claimed against a guard"
        if claim.repeats:
            replay.claimed(self.world, notice.on(claim.channel), self.now)
        else:
            protocol.claimed(self.world, notice, claim.channel, owner, self.now)
        provider = self._provider(claim.channel)
        turn = self.world.take_turn(provider, claim.channel, self.now)
        assert claim.turn_until == turn, "the turn to try a provider"
        return Worker(dispatch, claim, notice, owner)

    def shut_down(self, worker: Worker) -> None:
        """SIGTERM before the link was asked for."""
        self.ground.stopping = True
        try:
            assert worker.dispatch.link(worker.claim) is None
        finally:
            self.ground.stopping = False
        self._leave(worker)
        self._put(worker, "queued", "shutdown")

    def render(self, worker: Worker, *, fails: bool = False) -> None:
        assert worker.granted is not None
        self.ground.render_fails = fails
        worker.message = worker.dispatch.render(worker.claim, worker.granted)
        self.ground.render_fails = False
        worker.stage = "rendered"
        assert (worker.message is None) == fails
        if fails:
            self._leave(worker)
            self._not_rendered(worker)

    def _not_rendered(self, worker: Worker) -> None:
        if worker.claim.repeats:
            fence = worker.claim.fence
            replay.drop(self.world, worker.notice, worker.channel, fence, self.now)
            self.compare()
        else:
            self._put(worker, "failed", "render_failed")

    def fault(self, worker: Worker) -> None:
        """What raised before the intent is failed by the claim loop, and stands alone."""
        put_back.fail(self.ground.rig.desk, worker.claim, Reason.INTERNAL_FAULT)
        self._leave(worker)
        self._put(worker, "failed", "internal_fault")

    def intend(self, worker: Worker, *, no_line: bool = False) -> bool:
        """Open the line, then commit the intent. No replay is used up without a line."""
        assert worker.granted is not None
        assert worker.message is not None
        post = self.ground.posts[worker.channel]
        post.line_fails = NotAccepted(Detail.UNREACHABLE) if no_line else None
        worker.line = post.connect(1.0)
        if no_line and worker.claim.repeats:
            self._leave(worker)
            return False
        worker.started = worker.dispatch.intent(worker.claim, worker.granted, worker.message)
        started = self._intended(worker)
        assert (worker.started is not None) == started
        worker.stage, worker.started_at = "started", self.now
        if not started:
            self._leave(worker)
        self.compare()
        return started

    def _intended(self, worker: Worker) -> bool:
        """What the model says to it."""
        notice, channel, fence = worker.notice, worker.channel, worker.claim.fence
        if original := worker.claim.repeats:
            assert worker.message is not None
            same = worker.message.digest == original.message_digest
            claim = (fence, original.reference, worker.owner)
            turn = worker.claim.turn_until
            return replay.begin(self.world, notice, channel, claim, self.now, same=same, turn=turn)
        reference = worker.started.reference if worker.started else ""
        turn = worker.claim.turn_until
        said = protocol.intended(self.world, notice, channel, fence, reference, self.now, turn=turn)
        return said == "started"

    def call(self, worker: Worker, says: Outcome) -> None:
        """The clock of the process goes on as the database's does while a worker is frozen."""
        started, post = worker.started, self.ground.posts[worker.channel]
        assert started is not None
        assert worker.started_at is not None
        assert worker.granted is not None
        assert worker.message is not None
        passed = (self.now - worker.started_at).total_seconds()
        left = (started.intent.deadline - worker.started_at).total_seconds()
        begin = time.monotonic() - passed
        frozen = replace(started, intended_at=begin, ends_at=begin + left)
        post.says = says
        if worker.line is not None and not isinstance(worker.line, NotAccepted):
            worker.line = post.connect(1.0)
        line = worker.line or NotAccepted(Detail.UNREACHABLE)
        before = len(self.ground.sent)
        needless = worker.dispatch._needless(worker.claim)
        worker.outcome = needless or worker.dispatch.call(
            frozen, worker.granted, worker.message, line
        )
        if worker.claim.repeats:
            delivery = worker.notice.on(worker.channel)
            needed = replay.is_needed(delivery, worker.claim.fence, self.now)
            assert needed == (needless is None), "the last look before a replay"
        worker.stage = "called"
        if len(self.ground.sent) > before:
            self._check_sent(worker, passed)
        else:
            assert isinstance(worker.outcome, NotAccepted), "nothing left, and it is not known"

    def _check_sent(self, worker: Worker, passed: float) -> None:
        envelope = self.ground.sent[-1]
        self.sent[envelope.reference] += 1
        assert worker.started is not None
        assert envelope.reference == worker.started.reference
        most = 2 if worker.claim.repeats else 1
        assert self.sent[envelope.reference] <= most, "P3: called twice for one attempt"
        assert passed <= SLIPPED_S, "a held-up worker started its call"
        assert self.now < worker.started.intent.stop_at, "P5: sent after the stop time"

    def record(self, worker: Worker) -> None:
        assert worker.started is not None
        assert worker.outcome is not None
        worker.dispatch.record(worker.claim, worker.started, worker.outcome)
        answer = answer_of(worker.outcome)
        protocol.answered(
            self.world,
            worker.notice,
            worker.channel,
            worker.started.reference,
            answer,
            self.now,
            turn=worker.claim.turn_until,
            by_replay=worker.claim.repeats is not None,
        )
        self._leave(worker)
        self.compare()


def _least_validity_first(taken: list[Claim], permitted: list[Notice]) -> None:
    if taken:
        stops = sorted(each.on(taken[0].channel).stop_at for each in permitted)
        assert [each.stop_at for each in taken] == stops[: len(taken)], "least validity first"


def answer_of(outcome: Outcome) -> protocol.Answer:
    """The outcome in the model's words."""
    pause = getattr(outcome, "pause", None)
    return protocol.Answer(
        str(outcome.kind),
        str(getattr(outcome, "reason", "")),
        getattr(outcome, "provider_message_id", None),
        None if pause is None else (pause.seconds or 0.0),
    )
