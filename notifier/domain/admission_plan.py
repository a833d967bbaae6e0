"""What an event becomes on arrival: each delivery's first state, stop time and reason.

`admission_terms` decides all that does not depend on the moment of receipt. The moment is
the database's, so the admission statement finishes the decision in SQL; `plan` is the same
rule in Python and a test compares the two. In this order, first match wins:

1. received at or after expiry: both deliveries `expired` (`expired_on_arrival`);
2. an admitted event already superseded this one: both `canceled` (`reset_superseded`);
3. a static suppression: excluded by mode or for want of a provider, no destination or an
   invalid one, no consent, region not permitted;
4. the account has had its share: `account_cap_reached` for what is left;
5. otherwise the email is `queued` as the primary. The text is `queued` where it is the
   primary itself (`sms_only`, `parallel`) or where the email is suppressed, and on
   `standby` where it is a fallback with room: fallback time + room <= SMS stop time.

A usable delivery whose stop time has passed on arrival, while expiry has not, is queued all
the same: it can never be claimed, and the expiry sweep ends it `too_close_to_expiry`. The
table of moves has no such reason for a new delivery.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from notifier.domain.event import (
    Absent,
    DestinationClaim,
    Given,
    Invalid,
    NoneThere,
    PolicyMode,
)
from notifier.domain.policy import Policy
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState

EMAIL_MODES = frozenset({PolicyMode.EMAIL_THEN_SMS, PolicyMode.EMAIL_ONLY, PolicyMode.PARALLEL})
SMS_MODES = frozenset({PolicyMode.EMAIL_THEN_SMS, PolicyMode.SMS_ONLY, PolicyMode.PARALLEL})


class DestinationFact(StrEnum):
    """What the event says about a channel's destination."""

    GIVEN = "given"
    ABSENT = "absent"
    """Not mentioned: learnt from the link answer, so the channel may be used."""
    NONE = "none"
    """`null`: there is none."""
    INVALID = "invalid"


def fact_of(claim: DestinationClaim) -> DestinationFact:
    """What a claim of the event comes to, without the address."""
    match claim:
        case Given():
            return DestinationFact.GIVEN
        case Absent():
            return DestinationFact.ABSENT
        case NoneThere():
            return DestinationFact.NONE
        case Invalid():
            return DestinationFact.INVALID


@dataclass(frozen=True, slots=True)
class Inputs:
    """The event's policy inputs; None where it is silent. `region` is an ISO country code."""

    email_consent: bool | None = None
    sms_consent: bool | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True)
class AdmissionTerms:
    """All of the decision that is known before the moment of receipt.

    A suppression of None means that the channel may be used. Durations are seconds, rounded
    to microseconds as the database does: `window_s` observation window, `reserve_s` fallback
    reserve, `min_wait_s` one email call and one poll, `sms_room_s` one SMS call and one poll.
    """

    mode: PolicyMode
    email_suppression: Reason | None
    sms_suppression: Reason | None
    email_stop_at: datetime
    sms_stop_at: datetime
    expires_at: datetime
    window_s: float
    reserve_s: float
    min_wait_s: float
    sms_room_s: float


@dataclass(frozen=True, slots=True)
class DeliveryPlan:
    """One delivery's first state with its reason."""

    state: DeliveryState
    reason: Reason

    @property
    def may_be_used(self) -> bool:
        """Whether a message may still leave on this channel."""
        return self.state in {DeliveryState.QUEUED, DeliveryState.STANDBY}


@dataclass(frozen=True, slots=True)
class AdmissionPlan:
    """The whole decision.

    `fallback_at` is None unless a text is held in reserve. `stop_at` is the latest stop time
    over the channels that may be used, None when none may.
    """

    email: DeliveryPlan
    sms: DeliveryPlan
    fallback_at: datetime | None
    stop_at: datetime | None


def parallel_permitted(policy: Policy, reason_code: str | None) -> bool:
    """Whether the policy lets an event with this reason code use both channels at once.

    Admission answers 422 where it does not; a plan is never made for such an event.
    """
    return reason_code in policy.parallel_reason_codes


def admission_terms(  # noqa: PLR0913 - the event's own fields, by name
    policy: Policy,
    *,
    mode: PolicyMode,
    inputs: Inputs,
    destinations: Mapping[Channel, DestinationFact],
    requested_at: datetime,
    expires_at: datetime,
    channels_available: Collection[Channel],
) -> AdmissionTerms:
    """Everything about an event's admission but the moment of receipt.

    A channel without a configured provider (not in `channels_available`) is suppressed
    `excluded_by_policy`. A channel missing in `destinations` counts as absent.
    """
    life_s = (expires_at - requested_at).total_seconds()
    email = destinations.get(Channel.EMAIL, DestinationFact.ABSENT)
    sms = destinations.get(Channel.SMS, DestinationFact.ABSENT)
    email_in = mode in EMAIL_MODES and Channel.EMAIL in channels_available
    sms_in = mode in SMS_MODES and Channel.SMS in channels_available
    return AdmissionTerms(
        mode=mode,
        email_suppression=_email_suppression(policy, email_in, email, inputs),
        sms_suppression=_sms_suppression(policy, sms_in, sms, inputs),
        email_stop_at=stop_time(policy, Channel.EMAIL, expires_at),
        sms_stop_at=stop_time(policy, Channel.SMS, expires_at),
        expires_at=expires_at,
        window_s=_micro(policy.observation_window_s(life_s)),
        reserve_s=_micro(policy.fallback_reserve_s(life_s)),
        min_wait_s=_micro(policy.call_timeout_s.email + policy.poll_every_s),
        sms_room_s=_micro(policy.call_timeout_s.sms + policy.poll_every_s),
    )


def stop_time(policy: Policy, channel: Channel, expires_at: datetime) -> datetime:
    """The moment from which nothing starts on `channel`."""
    return expires_at - timedelta(seconds=policy.safety_margin(channel))


def plan(
    terms: AdmissionTerms,
    received_at: datetime,
    *,
    superseded: bool = False,
    account_cap_reached: bool = False,
) -> AdmissionPlan:
    """The deliveries of an event received at `received_at` (see the module for the order)."""
    if received_at >= terms.expires_at:
        return _both(DeliveryState.EXPIRED, Reason.EXPIRED_ON_ARRIVAL)
    if superseded:
        return _both(DeliveryState.CANCELED, Reason.RESET_SUPERSEDED)
    cap = Reason.ACCOUNT_CAP_REACHED if account_cap_reached else None
    fallback_at = fallback_time(terms, received_at)
    email = _email_plan(terms.email_suppression or cap)
    sms = _sms_plan(terms, terms.sms_suppression or cap, email, fallback_at)
    return AdmissionPlan(
        email=email,
        sms=sms,
        fallback_at=fallback_at if sms.state is DeliveryState.STANDBY else None,
        stop_at=_latest_stop(terms, email, sms),
    )


def fallback_time(terms: AdmissionTerms, received_at: datetime) -> datetime:
    """When a fallback must be decided at the latest (design, section 4)."""
    watched = received_at + timedelta(seconds=terms.window_s)
    reserved = terms.expires_at - timedelta(seconds=terms.reserve_s)
    earliest = received_at + timedelta(seconds=terms.min_wait_s)
    return max(min(watched, reserved), earliest)


def _email_suppression(
    policy: Policy, included: bool, destination: DestinationFact, inputs: Inputs
) -> Reason | None:
    if not included:
        return Reason.EXCLUDED_BY_POLICY
    if fault := _destination_fault(destination):
        return fault
    required = policy.require_consent.email
    return None if _consents(inputs.email_consent, required) else Reason.NO_CONSENT


def _sms_suppression(
    policy: Policy, included: bool, destination: DestinationFact, inputs: Inputs
) -> Reason | None:
    if not included:
        return Reason.EXCLUDED_BY_POLICY
    if fault := _destination_fault(destination):
        return fault
    if not _consents(inputs.sms_consent, policy.require_consent.sms):
        return Reason.NO_CONSENT
    permitted = region_permitted(policy, inputs.region)
    return None if permitted else Reason.REGION_NOT_PERMITTED


def region_permitted(policy: Policy, region: str | None) -> bool:
    """Whether a text may go to this country; with a list, an absent region may not."""
    listed = policy.regions.sms
    return listed == "any" or (region is not None and region.upper() in listed)


def _destination_fault(fact: DestinationFact) -> Reason | None:
    if fact is DestinationFact.NONE:
        return Reason.NO_DESTINATION
    return Reason.INVALID_DESTINATION if fact is DestinationFact.INVALID else None


def _consents(said: bool | None, required: bool) -> bool:
    """An explicit no always counts; silence counts as yes unless a yes is required."""
    return said is True or (said is None and not required)


def _email_plan(suppression: Reason | None) -> DeliveryPlan:
    if suppression:
        return DeliveryPlan(DeliveryState.SUPPRESSED, suppression)
    return DeliveryPlan(DeliveryState.QUEUED, Reason.PRIMARY_SELECTED)


def _sms_plan(
    terms: AdmissionTerms, suppression: Reason | None, email: DeliveryPlan, fallback_at: datetime
) -> DeliveryPlan:
    if suppression:
        return DeliveryPlan(DeliveryState.SUPPRESSED, suppression)
    if terms.mode is not PolicyMode.EMAIL_THEN_SMS:
        return DeliveryPlan(DeliveryState.QUEUED, Reason.PRIMARY_SELECTED)
    if not email.may_be_used:
        return DeliveryPlan(DeliveryState.QUEUED, Reason.FALLBACK_EMAIL_SUPPRESSED)
    if fallback_at + timedelta(seconds=terms.sms_room_s) > terms.sms_stop_at:
        return DeliveryPlan(DeliveryState.SUPPRESSED, Reason.LIFE_TOO_SHORT_FOR_FALLBACK)
    return DeliveryPlan(DeliveryState.STANDBY, Reason.FALLBACK_RESERVED)


def _latest_stop(terms: AdmissionTerms, email: DeliveryPlan, sms: DeliveryPlan) -> datetime | None:
    stops = []
    if email.may_be_used:
        stops.append(terms.email_stop_at)
    if sms.may_be_used:
        stops.append(terms.sms_stop_at)
    return max(stops, default=None)


def _both(state: DeliveryState, reason: Reason) -> AdmissionPlan:
    same = DeliveryPlan(state, reason)
    return AdmissionPlan(email=same, sms=same, fallback_at=None, stop_at=None)


def _micro(seconds: float) -> float:
    return round(seconds, 6)
