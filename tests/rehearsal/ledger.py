"""Does to the real ledger what was done in a rehearsal, each thing at the same moment.

The real flows decide everything; a rehearsal only says who acted when. Chance is taken out of
the policy, so that waits are the same on both sides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from notifier.domain.admission_plan import DestinationFact
from notifier.domain.call_limits import call_budget, turn_limit
from notifier.domain.event import NoneThere, PolicyMode
from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import Accepted
from notifier.domain.reasons import Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.flow import expiry, halts, put_back, rescue, turns
from notifier.flow.cancel import cancel
from notifier.flow.desk import Asks
from notifier.flow.recording import Recorder
from notifier.ports.asking import CannotTell, Capability, Found, Looked, NotFound, ProviderReceipt
from notifier.rehearsal.acts import REQUESTED_AT, Act, Rehearsed
from notifier.rehearsal.script import KINDS, Look, Script
from notifier.store.ledger import replay
from notifier.store.ledger.claim import Claim, Take
from notifier.store.ledger.intent import Verdict
from notifier.store.ledger.replay import ReplayVerdict
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import Asked, receipt, reconciler
from tests.db.rig import BOTH, WORKER, Rig, event_at

Step = tuple[str | None, str | None, str | None, str, int]
"""Channel, from, to, reason, and the remaining validity in microseconds."""

CANCELS = frozenset({"used", "superseded", "revoked"})
DIGEST = "00"


def asks() -> dict[str, Asks]:
    return {
        name: Asks(can_find=kind.finds != "nothing", can_poll=kind.can_poll)
        for name, kind in KINDS.items()
    }


@dataclass
class RealLedger:
    """One notice of a script in the real ledger."""

    rig: Rig
    clock: Clock
    script: Script
    claims: dict[Channel, Claim] = field(default_factory=dict)
    notice_id: UUID | None = None
    acts: tuple[Act, ...] = ()
    looked_at: datetime | None = None
    identities: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.rig.recorder = Recorder(
            database=self.rig.database,
            desk=self.rig.desk,
            reports_deliveries={
                each: self.script.channel(each).kind.reports_deliveries for each in Channel
            },
            count=lambda _channel, _provider, _outcome: None,
            give_up=self.rig.give_up,
        )

    def play(self, rehearsed: Rehearsed) -> list[Step]:
        """Do every act at its moment, and tell the trail that came of it."""
        self.acts = rehearsed.acts
        for act in self.acts:
            self.clock.freeze(act.at)
            do: Callable[[Act], None] = getattr(self, act.name)
            do(act)
        assert self.notice_id is not None
        return [
            (row["channel"], row["from_state"], row["to_state"], row["reason"], row["remaining_us"])
            for row in self.rig.trail(self.notice_id)
        ]

    # --- what can be done

    def admit(self, _act: Act) -> None:
        nowhere = {
            str(each): NoneThere()
            for each in Channel
            if self.script.channel(each).destination is DestinationFact.NONE
        }
        event = event_at(
            REQUESTED_AT,
            self.script.life_s,
            mode=PolicyMode(self.script.mode),
            email_consent=self.script.email.consent,
            sms_consent=self.script.sms.consent,
            region=self.script.region,
            **nowhere,
        )
        self.notice_id = self.rig.admit(event)

    def claim(self, act: Act) -> None:
        channel = self._channel(act)
        turn = turn_limit(self.rig.shelf.current()[1], channel)
        [self.claims[channel]] = self.rig.claim(
            channel=channel, provider=self._provider(channel), turn=turn
        )

    def no_link(self, act: Act) -> None:
        claim = self.claims[self._channel(act)]
        if act.what in CANCELS:
            put_back.end_reset(self.rig.desk, claim, act.what)
        elif act.what == "unavailable":
            put_back.hand_back_for_link(self.rig.desk, claim, LinkFault.NO_ANSWER_IN_TIME)
        else:
            put_back.suppress(self.rig.desk, claim, Reason(act.what))

    def intent(self, act: Act) -> None:
        channel = self._channel(act)
        claim = self.claims[channel]
        policy = self.rig.shelf.current()[1]
        intent = self.rig.intent(
            claim,
            self._reference(channel, claim.attempts + 1),
            provider=self._provider(channel),
            budget=call_budget(policy, channel),
        )
        if intent.verdict is not Verdict.STARTED:
            put_back.stand_back(self.rig.desk, claim, intent.verdict)

    def answer(self, act: Act) -> None:
        channel = self._channel(act)
        reference = self._reference(channel, act.number)
        outcome = act.what
        if isinstance(outcome, Accepted):
            outcome = Accepted(f"id-of-{reference}")
        self.rig.record(self.claims[channel], outcome, reference)

    replay_answer = answer

    def claim_replay(self, act: Act) -> None:
        channel = self._channel(act)
        lease = timedelta(seconds=self.rig.shelf.current()[1].lease_s)
        provider, turn = self._provider(channel), turn_limit(self.rig.shelf.current()[1], channel)
        with self.rig.database.connection() as connection:

            def take(until: datetime | None) -> list[Claim]:
                return replay.claim(
                    connection,
                    channel=channel,
                    provider=provider,
                    key_lifetime=self._key_lifetime(channel),
                    take=Take(1, lease, until),
                )

            [self.claims[channel]] = take(None) or turns.claim_in_turn(
                connection, provider, turn, take
            )

    def start_replay(self, act: Act) -> None:
        channel = self._channel(act)
        claim = self.claims[channel]
        assert claim.repeats is not None
        policy = self.rig.shelf.current()[1]
        with self.rig.database.connection() as connection:
            start = replay.start(
                connection,
                notice_id=claim.notice_id,
                channel=channel,
                fence=claim.fence,
                owner=WORKER,
                provider=self._provider(channel),
                reference=claim.repeats.reference,
                message_digest=DIGEST,
                key_lifetime=self._key_lifetime(channel),
                budget=call_budget(policy, channel),
                not_after=claim.stop_at,
                turn_until=claim.turn_until,
            )
        assert start.verdict is ReplayVerdict.STARTED

    def give_turn_back(self, act: Act) -> None:
        channel = self._channel(act)
        claim, provider = self.claims[channel], self._provider(channel)
        turns.give_back(self.rig.database, self.rig.desk, claim, provider)

    def tell(self, act: Act) -> None:
        channel, news = self._channel(act), act.what
        told = receipt(
            news.status,
            self._reference(channel, act.number),
            provider=self._provider(channel),
            identity=str(next(self.identities)).encode(),
            detail=news.detail,
            occurred_at=news.occurred_at,
        )
        self.rig.tell(told)

    def look(self, act: Act) -> None:
        """Both channels' looks of one moment, as the two sweeps take them."""
        if self.looked_at == act.at:
            return
        self.looked_at = act.at
        due = [each for each in self.acts if each.name == "look" and each.at == act.at]
        asking = replace(
            reconciler(self.rig, Asked()),
            lookups={self._provider(self._channel(each)): self._lookup(each) for each in due},
        )
        with self.rig.database.connection() as connection:
            asked = asking.poll(connection) + asking.reconcile(connection)
        assert asked >= len(due)

    def _lookup(self, act: Act) -> Asked:
        channel = self._channel(act)
        kind = self.script.channel(channel).kind
        return Asked(
            name=self._provider(channel),
            channel=channel,
            can_find=Capability(kind.finds),
            can_poll=kind.can_poll,
            says=self._says(act),
        )

    def sweep(self, _act: Act) -> None:
        with self.rig.database.connection() as connection:
            rescue.rescue(self.rig.desk, connection)
            expiry.decide_fallbacks(self.rig.desk, connection)
            expiry.expire(self.rig.desk, connection)

    def halt(self, act: Act) -> None:
        halts.engage(self.rig.database, scope=act.what, reason="rehearsed", by="tests")

    def release(self, act: Act) -> None:
        assert halts.release(self.rig.database, scope=act.what, reason="rehearsed", by="tests")

    def cancel(self, act: Act) -> None:
        assert self.notice_id is not None
        cancel(self.rig.desk, self.notice_id, act.what)

    # --- words

    def _says(self, act: Act) -> Looked:
        if not isinstance(act.what, Look) or act.what.found == "cannot_tell":
            return CannotTell("scripted")
        if act.what.found == "not_found":
            return NotFound()
        return Found([self._found(self._channel(act), act.number, act.what)])

    def _found(self, channel: Channel, number: int, look: Look) -> ProviderReceipt:
        reference = self._reference(channel, number)
        return receipt(
            ReceiptStatus(look.found),
            reference,
            provider=self._provider(channel),
            provider_message_id=f"id-of-{reference}",
            detail=look.detail,
        )

    def _provider(self, channel: Channel) -> str:
        return self.script.channel(channel).provider

    def _key_lifetime(self, channel: Channel) -> timedelta:
        return timedelta(seconds=self.script.channel(channel).kind.key_lifetime_s)

    @staticmethod
    def _channel(act: Act) -> Channel:
        assert act.channel is not None
        return act.channel

    @staticmethod
    def _reference(channel: Channel, number: int) -> str:
        return f"{channel}-{number}"


def in_the_real_ledger(
    make_rig: MakeRig, clock: Clock, script: Script, rehearsed: Rehearsed
) -> list[Step]:
    """The same script through the real flows."""
    rig = make_rig(
        channels=BOTH,
        policy={**script.policy, "retry_jitter": 0.0},
        takes_bounces=script.bounces,
        asks=asks(),
    )
    return RealLedger(rig, clock, script).play(rehearsed)


def steps_of(rehearsed: Rehearsed) -> list[Step]:
    """The rehearsed trail in the same form."""
    microsecond = timedelta(microseconds=1)
    return [
        (row.channel, row.from_state, row.to_state, row.reason, row.remaining // microsecond)
        for row in rehearsed.trail
    ]


def without_jitter(script: Script) -> Script:
    """The script under a policy that leaves nothing to chance."""
    return replace(script, policy={**script.policy, "retry_jitter": 0.0})


__all__: Sequence[str] = ("in_the_real_ledger", "steps_of", "without_jitter")
