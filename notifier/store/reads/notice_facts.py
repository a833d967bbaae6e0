"""What is known about one notice, as plain values: see `notice.py` for how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.store.reads.halts import HaltRow


@dataclass(frozen=True, slots=True)
class Decision:
    """What the auth service decided and sent, and how it reached us."""

    mode: str
    reason_code: str | None
    decision_id: str | None
    decision_digest: str | None
    email_consent: bool | None
    sms_consent: bool | None
    region: str | None
    signing_key_id: str
    transport_id: str | None
    locale: str | None
    locale_used: str
    received_at: datetime
    reasons: tuple[str, ...]
    """Why each channel was chosen or left out at admission: `channel: reason`."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One external send. `outcome` is None while the call may still run."""

    channel: Channel
    number: int
    klass: str
    key: str
    reference: str
    provider: str
    template_revision: str
    started_at: datetime
    deadline: datetime
    finished_at: datetime | None
    outcome: str | None
    reason: str | None
    detail: str | None
    provider_code: str | None
    provider_message_id: str | None
    replay_started_at: datetime | None
    resolved_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One channel's job. `mask` and `fingerprint` (first hex digits) go with retention."""

    channel: Channel
    state: DeliveryState
    reason: str
    detail: str | None
    is_fallback: bool
    provider: str | None
    final_acceptance: bool
    stop_at: datetime
    due_at: datetime
    link_tries: int
    may_have_left: bool
    left_at: datetime | None
    arrived_at: datetime | None
    next_check_at: datetime | None
    looks: int
    changed_at: datetime
    mask: str | None
    mask_source: str | None
    fingerprint: str | None
    attempts: tuple[AttemptRow, ...]


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """What a provider told us, by whichever way."""

    receipt_id: UUID
    channel: str | None
    attempt: int | None
    provider: str
    source: str
    status: str
    detail: str | None
    provider_code: str | None
    occurred_at: datetime | None
    received_at: datetime
    applied_at: datetime | None


@dataclass(frozen=True, slots=True)
class TransitionRow:
    """One row of the trail. `remaining` is the life left when it was recorded, maybe negative."""

    seq: int
    recorded_at: datetime
    occurred_at: datetime
    channel: str | None
    attempt: int | None
    actor: str
    from_state: str | None
    to_state: str | None
    reason: str
    detail: str | None
    provider: str | None
    provider_ref: str | None
    receipt_id: UUID | None
    remaining: timedelta
    template_revision: str
    policy_revision: int
    evidence: dict[str, Any] | None
    hash: bytes


@dataclass(frozen=True, slots=True)
class TicketRow:
    """A help-desk ticket that the notice is linked to."""

    ticket_id: str
    linked_at: datetime
    linked_by: str


@dataclass(frozen=True, slots=True)
class NoticePage:
    """One notice with all its facts; `as_of` is the database's time of reading.

    `requested_at`, `original_expires_at` and `stop_at` come from the admission, `expires_at`
    is the present one. `halts` are those in force that this notice falls under, those of a
    channel or provider only while it has something there that could still start. From
    `details_erased_at` on, the event as it was sent and what providers had told are gone; what
    the trail says of them stays.
    """

    notice_id: UUID
    event_id: str
    idempotency_key: str
    reset_request_id: str
    account_id: str
    template_id: str
    template_revision: str
    policy_revision: int
    state: NoticeState
    basis: str | None
    canceled_reason: str | None
    canceled_at: datetime | None
    requested_at: datetime
    created_at: datetime
    original_expires_at: datetime
    expires_at: datetime
    stop_at: datetime | None
    fallback_at: datetime | None
    changed_at: datetime
    details_erased_at: datetime | None
    correlation_id: str | None
    decision: Decision | None
    deliveries: tuple[DeliveryRow, ...]
    receipts: tuple[ReceiptRow, ...]
    transitions: tuple[TransitionRow, ...]
    more_transitions: bool
    tickets: tuple[TicketRow, ...]
    halts: tuple[HaltRow, ...]
    as_of: datetime

    @property
    def on_hold(self) -> bool:
        """Whether a halt keeps back something that could still start."""
        waiting = {DeliveryState.STANDBY, DeliveryState.QUEUED, DeliveryState.CLAIMED}
        return bool(self.halts) and any(each.state in waiting for each in self.deliveries)

    @property
    def remaining(self) -> timedelta:
        """Life left at `as_of`; never negative."""
        return max(self.expires_at - self.as_of, timedelta())

    @property
    def is_open(self) -> bool:
        """Whether it may still change before it expires."""
        final = {NoticeState.FAILED, NoticeState.SUPPRESSED, NoticeState.EXPIRED}
        return self.state not in final and self.remaining > timedelta()

    @property
    def may_change(self) -> bool:
        """Whether a reader has something to wait for: also the end of what is pending too long."""
        return self.is_open or self.state in {NoticeState.EMAIL_PENDING, NoticeState.TEXT_PENDING}
