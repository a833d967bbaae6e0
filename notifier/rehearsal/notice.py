"""One notice in memory: what the ledger keeps of it, written by the same rules.

Every decision is the product's own (`domain`); here is only what the decisions are written
into. A move that the table of states does not have is refused as the database refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from notifier.domain.admission_plan import (
    AdmissionPlan,
    AdmissionTerms,
    Inputs,
    admission_terms,
    plan,
)
from notifier.domain.event import PolicyMode
from notifier.domain.fallback import next_fallback_at, settle
from notifier.domain.fallback_view import Decision, DeliveryView, NoticeView, Step
from notifier.domain.notice_state import Basis, DeliveryFacts, notice_state
from notifier.domain.outcome import OutcomeKind
from notifier.domain.policy import Policy
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState, is_permitted
from notifier.rehearsal.script import Script


@dataclass(slots=True)
class Delivery:
    """The columns of a delivery that a decision looks at."""

    channel: Channel
    state: DeliveryState
    reason: Reason
    stop_at: datetime
    due_at: datetime
    link_tries: int = 0
    attempts: int = 0
    fence: int = 0
    lease_until: datetime | None = None
    next_check_at: datetime | None = None
    looks: int = 0
    absent_looks: int = 0
    replay_due_at: datetime | None = None
    may_have_left: bool = False
    left_at: datetime | None = None
    arrived_at: datetime | None = None
    requeued_at: datetime | None = None
    final_acceptance: bool = False


@dataclass(slots=True)
class Attempt:
    """One attempt. `message_known`: the provider's own id has been learnt."""

    channel: Channel
    number: int
    started_at: datetime
    deadline: datetime
    finished_at: datetime | None = None
    outcome: OutcomeKind | None = None
    reason: str | None = None
    call_ended: bool = False
    resolved: bool = False
    message_known: bool = False
    replay_authorised: bool = False
    replay_started: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the trail. `remaining` is the life left when it was written, maybe negative."""

    at: datetime
    channel: Channel | None
    from_state: DeliveryState | None
    to_state: DeliveryState | None
    reason: Reason
    remaining: timedelta
    detail: str | None = None
    occurred_at: datetime | None = None


@dataclass(slots=True)
class Notice:
    """The whole notice; `now` is the virtual clock."""

    policy: Policy
    script: Script
    now: datetime
    expires_at: datetime
    deliveries: dict[Channel, Delivery]
    fallback_at: datetime | None
    halts: set[str] = field(default_factory=set)
    ended_by: Reason | None = None
    hold_noted: bool = False
    avoidable_noted: bool = False
    state: NoticeState = NoticeState.EMAIL_PENDING
    basis: Basis | None = None
    attempts: list[Attempt] = field(default_factory=list)
    trail: list[Row] = field(default_factory=list)
    first_states: dict[Channel, DeliveryState] = field(default_factory=dict)

    @property
    def canceled(self) -> bool:
        """Whether the request was canceled, whatever had left by then."""
        return self.ended_by is not None

    # --- looking

    @property
    def closed(self) -> bool:
        """Past expiry by the clock."""
        return self.now >= self.expires_at

    def open_attempt(self, channel: Channel) -> Attempt | None:
        """The one attempt of `channel` whose outcome is not resolved."""
        for attempt in self.attempts:
            if attempt.channel is channel and not attempt.resolved:
                return attempt
        return None

    def is_halted(self, channel: Channel) -> bool:
        """Whether a halt that stands covers this channel."""
        if not self.halts:
            return False
        provider = self.script.channel(channel).provider
        scopes = {"all", f"channel:{channel}", f"provider:{provider}"}
        return not self.halts.isdisjoint(scopes)

    def view(self) -> NoticeView:
        """What the rules may look at."""
        email, sms = self.deliveries[Channel.EMAIL], self.deliveries[Channel.SMS]
        return NoticeView(
            now=self.now,
            expires_at=self.expires_at,
            mode=self.script.mode,
            email=self._view_of(email),
            sms=self._view_of(sms),
            fallback_at=self.fallback_at,
            on_unknown=self.policy.on_unknown,
            on_unconfirmed=self.policy.on_unconfirmed,
            takes_bounces=self.script.bounces,
            canceled=self.canceled,
            hold_noted=self.hold_noted,
            email_arrived_at=email.arrived_at,
            sms_queued_at=sms.requeued_at,
            avoidable_noted=self.avoidable_noted,
        )

    def _view_of(self, delivery: Delivery) -> DeliveryView:
        attempt = self.open_attempt(delivery.channel)
        return DeliveryView(
            state=delivery.state,
            stop_at=delivery.stop_at,
            halted=self.is_halted(delivery.channel),
            ever_attempted=delivery.attempts > 0,
            call_deadline=attempt.deadline if attempt else None,
            acceptance_is_final=delivery.final_acceptance,
        )

    # --- writing

    def note(
        self,
        channel: Channel | None,
        reason: Reason,
        *,
        detail: str | None = None,
        occurred_at: datetime | None = None,
    ) -> None:
        """Write a fact that moves nothing."""
        state = self.deliveries[channel].state if channel else None
        self._append(channel, state, state, reason, detail, occurred_at)

    def move(
        self,
        channel: Channel,
        to: DeliveryState,
        reason: Reason,
        *,
        detail: str | None = None,
        occurred_at: datetime | None = None,
    ) -> Delivery:
        """Move a delivery and write its row. Raises ValueError for a move that is not permitted."""
        delivery = self.deliveries[channel]
        if not is_permitted(delivery.state, to, reason):
            raise ValueError(f"no move from {delivery.state} to {to} for {reason}")
        self._append(channel, delivery.state, to, reason, detail, occurred_at)
        delivery.state, delivery.reason, delivery.replay_due_at = to, reason, None
        if to not in (DeliveryState.CLAIMED, DeliveryState.ATTEMPTED):
            delivery.lease_until = None
        return delivery

    def _append(
        self,
        channel: Channel | None,
        start: DeliveryState | None,
        end: DeliveryState | None,
        reason: Reason,
        detail: str | None,
        occurred_at: datetime | None,
    ) -> None:
        left = self.expires_at - self.now
        self.trail.append(Row(self.now, channel, start, end, reason, left, detail, occurred_at))

    # --- settling, as whoever closes a book does

    def open(self) -> None:
        """Begin a transaction over the notice."""
        self.first_states = {name: each.state for name, each in self.deliveries.items()}

    def settle(self) -> None:
        """Ask the rules, and write what follows, before the transaction ends."""
        for step in settle(self.view()):
            self.write_step(step)
        self.fallback_at = next_fallback_at(self.view())
        for delivery in self.deliveries.values():
            self._plan_looks(delivery)
        self.draw_state()

    def write_step(self, step: Step) -> None:
        """Write one step of the rules."""
        if isinstance(step, Decision):
            delivery = self.move(step.channel, step.to_state, step.reason)
            if step.to_state is DeliveryState.QUEUED:
                delivery.due_at = delivery.requeued_at = self.now
            return
        self.note(step.channel, step.reason)
        if step.reason is Reason.FALLBACK_HELD:
            self.hold_noted = True
        else:
            self.avoidable_noted = True

    def draw_state(self) -> None:
        """The notice's state as a function of its deliveries."""
        email, sms = self.deliveries[Channel.EMAIL], self.deliveries[Channel.SMS]
        self.state, self.basis = notice_state(
            DeliveryFacts(email.state, email.final_acceptance),
            DeliveryFacts(sms.state, sms.final_acceptance),
            canceled=self.canceled,
            sms_is_fallback=self.script.mode is PolicyMode.EMAIL_THEN_SMS,
        )

    def _plan_looks(self, delivery: Delivery) -> None:
        """Set or clear when the provider is asked next; only a move begins a new count."""
        wait_s = self._first_look_s(delivery)
        if wait_s is None:
            delivery.next_check_at = None
        elif delivery.state != self.first_states[delivery.channel] or not delivery.next_check_at:
            delivery.next_check_at = self.now + timedelta(seconds=wait_s)
            delivery.looks = delivery.absent_looks = 0

    def _first_look_s(self, delivery: Delivery) -> float | None:
        kind = self.script.channel(delivery.channel).kind
        if delivery.state is DeliveryState.UNKNOWN and kind.finds != "nothing":
            return self.policy.reconcile_delay(1)
        waits = delivery.state is DeliveryState.ACCEPTED and not delivery.final_acceptance
        return self.policy.poll_every_s if waits and kind.can_poll else None


def admitted(script: Script, policy: Policy, requested_at: datetime) -> Notice:
    """The notice of the scripted event, as admission leaves it."""
    expires_at = requested_at + timedelta(seconds=script.life_s)
    received_at = requested_at + timedelta(seconds=script.arrives_s)
    terms = admission_terms(
        policy,
        mode=script.mode,
        inputs=Inputs(script.email.consent, script.sms.consent, script.region),
        destinations={each: script.channel(each).destination for each in Channel},
        requested_at=requested_at,
        expires_at=expires_at,
        channels_available=tuple(Channel),
    )
    planned = plan(terms, received_at)
    notice = Notice(
        policy=policy,
        script=script,
        now=received_at,
        expires_at=expires_at,
        deliveries=_deliveries(terms, planned, received_at),
        fallback_at=planned.fallback_at,
    )
    notice.trail.append(
        Row(received_at, None, None, None, Reason.EVENT_ADMITTED, expires_at - received_at)
    )
    for each in notice.deliveries.values():
        left = expires_at - received_at
        notice.trail.append(Row(received_at, each.channel, None, each.state, each.reason, left))
    notice.draw_state()
    return notice


def _deliveries(
    terms: AdmissionTerms, planned: AdmissionPlan, now: datetime
) -> dict[Channel, Delivery]:
    email, sms = planned.email, planned.sms
    return {
        Channel.EMAIL: Delivery(Channel.EMAIL, email.state, email.reason, terms.email_stop_at, now),
        Channel.SMS: Delivery(Channel.SMS, sms.state, sms.reason, terms.sms_stop_at, now),
    }
