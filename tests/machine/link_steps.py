"""The second step, done to both sides: what the auth service answers, and what that means."""

from __future__ import annotations

from datetime import timedelta

from notifier.domain.link_faults import LinkFault
from notifier.flow.dispatch import Granted
from notifier.ports.links import LinkAnswer, LinkGone, LinkGranted, LinkUnavailable, LinkWithheld
from tests.machine.example import Example, Worker
from tests.machine.model import protocol, replay
from tests.machine.peers import address, destination

LINK_WAITS = (1.0, 2.0, 5.0, 10.0)


class LinkSteps(Example):
    """Asking for link and destination, for a first call and for a replay."""

    def link(
        self,
        worker: Worker,
        says: str = "granted",
        *,
        skew: float = 0,
        cut: float | None = None,
        moved: bool = False,
    ) -> None:
        """`says`: granted, unavailable, a reason to withhold, or gone-<why>; `cut`: the life
        that is left by the answer; `moved`: the destination is another one."""
        self.ground.skew = timedelta(seconds=skew)
        late = self.now + self.ground.skew >= worker.claim.stop_at
        self.ground.auth.says = self._link_answer(worker, says, cut, moved=moved)
        granted = worker.dispatch.link(worker.claim)
        self.ground.skew = timedelta(0)
        if worker.claim.repeats and not late:
            self._linked_again(worker, granted, says, cut, moved=moved)
            return
        assert (granted is not None) == (says == "granted" and not late)
        worker.granted, worker.stage = granted, "linked"
        if granted is None:
            self._leave(worker)
        if late:
            self.world.settle(worker.notice, self.now)
            self.compare()
        else:
            self._linked(worker, says, cut, moved=moved)

    def _linked_again(
        self, worker: Worker, granted: Granted | None, says: str, cut: float | None, *, moved: bool
    ) -> None:
        """11.6: a replay's link answer never ends the delivery."""
        notice, world, fence = worker.notice, self.world, worker.claim.fence
        known = notice.contacts.get(worker.channel) == self._address(worker, moved=moved)
        assert (granted is not None) == (says == "granted" and known)
        worker.granted, worker.stage = granted, "linked"
        if granted is None:
            self._leave(worker)
        until = None if cut is None else self.now + timedelta(seconds=cut)
        match says:
            case "granted" if known:
                if until is not None and until < worker.claim.expires_at:
                    world.shorten(notice, until, self.now)
            case "unavailable":
                pass
            case "gone-expired":
                world.shorten(notice, self.now, self.now)
                replay.drop(world, notice, worker.channel, fence, self.now)
            case _:
                if says.startswith("gone-"):
                    world.cancel(notice, says.removeprefix("gone-"), self.now)
                replay.drop(world, notice, worker.channel, fence, self.now)
        self.compare()

    def _address(self, worker: Worker, *, moved: bool) -> str:
        account = int(worker.notice.account.rpartition("-")[2]) + (1 if moved else 0)
        return address(worker.channel, account)

    def _link_answer(
        self, worker: Worker, says: str, cut: float | None, *, moved: bool
    ) -> LinkAnswer:
        account = int(worker.notice.account.rpartition("-")[2]) + (1 if moved else 0)
        if says == "granted":
            until = None if cut is None else self.now + timedelta(seconds=cut)
            return LinkGranted(destination(worker.channel, account), None, until)
        if says == "unavailable":
            return LinkUnavailable(LinkFault.NO_ANSWER_IN_TIME)
        if says.startswith("gone-"):
            return LinkGone(says.removeprefix("gone-"))  # type: ignore[arg-type]
        return LinkWithheld(says)  # type: ignore[arg-type]

    def _linked(self, worker: Worker, says: str, cut: float | None, *, moved: bool) -> None:
        notice, world = worker.notice, self.world
        match says:
            case "granted":
                self._learnt(worker, moved=moved)
                until = None if cut is None else self.now + timedelta(seconds=cut)
                if until is not None and until < worker.claim.expires_at:
                    world.shorten(notice, until, self.now)
                self.compare()
            case "unavailable":
                self._link_later(worker)
            case "gone-expired":
                world.shorten(notice, self.now, self.now)
                self.compare()
            case _ if says.startswith("gone-"):
                world.cancel(notice, says.removeprefix("gone-"), self.now)
                self.compare()
            case _:
                self._put(worker, "suppressed", says)

    def _learnt(self, worker: Worker, *, moved: bool) -> None:
        """The link answer is newer than the event and rules; that it differs is a fact."""
        notice, channel = worker.notice, worker.channel
        now_at = self._address(worker, moved=moved)
        before = notice.contacts.get(channel)
        notice.contacts[channel] = now_at
        if before not in (None, now_at):
            notice.note(notice.on(channel), "destination_changed")
            self.world.settle(notice, self.now)

    def _link_later(self, worker: Worker) -> None:
        delivery, claim = worker.notice.on(worker.channel), worker.claim
        ours = protocol.is_ours(delivery, claim.fence)
        if ours:
            delivery.link_tries += 1
            wait = LINK_WAITS[min(delivery.link_tries, len(LINK_WAITS)) - 1]
            delivery.due_at = claim.stop_at
            delivery.due_between = (
                min(self.now + timedelta(seconds=0.8 * wait), claim.stop_at),
                min(self.now + timedelta(seconds=1.2 * wait), claim.stop_at),
            )
        self._put(worker, "queued", "link_unavailable")
        self.compared()
