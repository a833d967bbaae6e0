"""What a notice has come to: a pure, total function of its deliveries and its cancel.

The first rule that matches wins (design, section 3.2). There is no clock in it, and it is
flat enough to stand as one CASE in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from notifier.domain.states import DeliveryState, NoticeState


class Basis(StrEnum):
    """What a complete notice rests on. Neither proves that an account was recovered."""

    DELIVERED = "delivered"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class DeliveryFacts:
    """A delivery as the notice sees it.

    `acceptance_is_final`: the provider never reports more than "accepted", and the policy
    takes that as the end.
    """

    state: DeliveryState
    acceptance_is_final: bool = False


BUSY: Final = frozenset(
    {
        DeliveryState.QUEUED,
        DeliveryState.CLAIMED,
        DeliveryState.ATTEMPTED,
        DeliveryState.UNKNOWN,
        DeliveryState.ACCEPTED,
    }
)
"""States in which a delivery is on its way."""

Verdict = tuple[NoticeState, Basis | None]


def notice_state(
    email: DeliveryFacts | None,
    sms: DeliveryFacts | None,
    *,
    canceled: bool,
    sms_is_fallback: bool = True,
) -> Verdict:
    """The notice's state, and the basis where it is complete.

    `sms_is_fallback` is False for the modes `parallel` and `sms_only`. A channel without a
    delivery is None.
    """
    return notice_state_flat(
        email.state if email else None,
        email.acceptance_is_final if email else False,
        sms.state if sms else None,
        sms.acceptance_is_final if sms else False,
        sms_is_fallback,
        canceled,
    )


def notice_state_flat(  # noqa: PLR0911 - eight rules, the columns of the SQL
    email_state: DeliveryState | None,
    email_final: bool,
    sms_state: DeliveryState | None,
    sms_final: bool,
    sms_is_fallback: bool,
    canceled: bool,
) -> Verdict:
    """The same over plain columns, in the order of the rules."""
    states = (email_state, sms_state)
    if basis := _basis(email_state, email_final, sms_state, sms_final):
        return NoticeState.COMPLETE, basis
    if canceled:
        return NoticeState.CANCELED, None
    if sms_state in BUSY and (sms_is_fallback or email_state not in BUSY):
        return NoticeState.TEXT_PENDING, None
    if email_state in BUSY or email_state is DeliveryState.STANDBY:
        return NoticeState.EMAIL_PENDING, None
    if sms_state is DeliveryState.STANDBY:
        return NoticeState.TEXT_PENDING, None
    if DeliveryState.EXPIRED in states:
        return NoticeState.EXPIRED, None
    if DeliveryState.FAILED in states:
        return NoticeState.FAILED, None
    return NoticeState.SUPPRESSED, None


def _basis(
    email_state: DeliveryState | None,
    email_final: bool,
    sms_state: DeliveryState | None,
    sms_final: bool,
) -> Basis | None:
    if DeliveryState.DELIVERED in (email_state, sms_state):
        return Basis.DELIVERED
    email_done = email_state is DeliveryState.ACCEPTED and email_final
    sms_done = sms_state is DeliveryState.ACCEPTED and sms_final
    return Basis.ACCEPTED if email_done or sms_done else None
