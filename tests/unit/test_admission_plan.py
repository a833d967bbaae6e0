"""What an event becomes on arrival."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.admission_plan import (
    AdmissionPlan,
    AdmissionTerms,
    DestinationFact,
    Inputs,
    admission_terms,
    fact_of,
    fallback_time,
    parallel_permitted,
    plan,
)
from notifier.domain.event import Absent, DestinationClaim, Given, Invalid, NoneThere, PolicyMode
from notifier.domain.policy import parse_policy
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, is_permitted
from notifier.domain.states import DeliveryState as S
from notifier.domain.values import Destination, Secret

R = Reason
START = datetime(2026, 5, 3, 14, 0, tzinfo=UTC)
CONSENT = Inputs(sms_consent=True)
BOTH = (Channel.EMAIL, Channel.SMS)


def terms(
    policy: dict[str, Any] | None = None,
    *,
    mode: PolicyMode = PolicyMode.EMAIL_THEN_SMS,
    inputs: Inputs = CONSENT,
    email: DestinationFact = DestinationFact.GIVEN,
    sms: DestinationFact = DestinationFact.GIVEN,
    life_s: float = 600,
    available: Collection[Channel] = BOTH,
) -> AdmissionTerms:
    return admission_terms(
        parse_policy(policy or {}),
        mode=mode,
        inputs=inputs,
        destinations={Channel.EMAIL: email, Channel.SMS: sms},
        requested_at=START,
        expires_at=START + timedelta(seconds=life_s),
        channels_available=available,
    )


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def first_states(made: AdmissionPlan) -> tuple[tuple[S, R], tuple[S, R]]:
    return (made.email.state, made.email.reason), (made.sms.state, made.sms.reason)


def test_an_email_goes_first_and_a_text_is_reserved() -> None:
    made = plan(terms(), at(1))
    assert first_states(made) == ((S.QUEUED, R.PRIMARY_SELECTED), (S.STANDBY, R.FALLBACK_RESERVED))
    assert made.fallback_at == at(301)
    assert made.stop_at == at(585)


def test_with_a_long_window_the_reserve_sets_the_fallback_time_at_minute_eight() -> None:
    wide = {"observation_window": {"share": 1, "cap_s": 900}}
    made = plan(terms(wide), at(1))
    assert made.fallback_at == at(480)


def test_the_fallback_time_is_never_before_one_call_and_one_poll() -> None:
    late = terms()
    assert fallback_time(late, at(400)) == at(480)
    assert fallback_time(late, at(410)) == at(480)
    assert fallback_time(late, at(411)) == at(481)


def test_a_text_without_room_is_not_reserved() -> None:
    """Stop time of the text is 580 s; room is 10 s call and 60 s poll."""
    assert plan(terms(), at(440)).sms.state is S.STANDBY
    made = plan(terms(), at(440.000001))
    assert first_states(made)[1] == (S.SUPPRESSED, R.LIFE_TOO_SHORT_FOR_FALLBACK)
    assert made.fallback_at is None
    assert made.stop_at == at(585)


@pytest.mark.parametrize("second", [600, 600.5, 90_000])
def test_p5_an_event_past_its_expiry_is_admitted_as_expired_on_both_channels(second: float) -> None:
    made = plan(terms(email=DestinationFact.NONE), at(second), superseded=True)
    assert first_states(made) == ((S.EXPIRED, R.EXPIRED_ON_ARRIVAL),) * 2
    assert (made.stop_at, made.fallback_at) == (None, None)


def test_an_event_just_before_its_expiry_is_queued_for_the_sweep_to_end() -> None:
    made = plan(terms(), at(599.999999))
    assert first_states(made)[0] == (S.QUEUED, R.PRIMARY_SELECTED)
    assert first_states(made)[1] == (S.SUPPRESSED, R.LIFE_TOO_SHORT_FOR_FALLBACK)


def test_an_event_older_than_a_superseding_one_is_canceled() -> None:
    made = plan(terms(), at(1), superseded=True)
    assert first_states(made) == ((S.CANCELED, R.RESET_SUPERSEDED),) * 2
    assert made.stop_at is None


def test_an_account_that_had_its_share_gets_nothing_and_keeps_the_first_reason() -> None:
    made = plan(terms(sms=DestinationFact.NONE), at(1), account_cap_reached=True)
    assert made.email.reason is R.ACCOUNT_CAP_REACHED
    assert made.sms.reason is R.NO_DESTINATION
    assert made.stop_at is None


def test_email_only_excludes_the_text() -> None:
    made = plan(terms(mode=PolicyMode.EMAIL_ONLY), at(1))
    assert first_states(made)[1] == (S.SUPPRESSED, R.EXCLUDED_BY_POLICY)


def test_sms_only_excludes_the_email_and_starts_the_text() -> None:
    made = plan(terms(mode=PolicyMode.SMS_ONLY), at(1))
    assert first_states(made) == (
        (S.SUPPRESSED, R.EXCLUDED_BY_POLICY),
        (S.QUEUED, R.PRIMARY_SELECTED),
    )
    assert made.stop_at == at(580)


def test_parallel_starts_both_and_reserves_none() -> None:
    made = plan(terms(mode=PolicyMode.PARALLEL), at(1))
    assert first_states(made) == ((S.QUEUED, R.PRIMARY_SELECTED),) * 2
    assert made.fallback_at is None


def test_parallel_is_permitted_only_for_listed_reason_codes() -> None:
    listed = parse_policy({"parallel_reason_codes": ["account-takeover"]})
    assert parallel_permitted(listed, "account-takeover")
    assert not parallel_permitted(listed, "other")
    assert not parallel_permitted(listed, None)
    assert not parallel_permitted(parse_policy({}), "account-takeover")


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        (DestinationFact.NONE, R.NO_DESTINATION),
        (DestinationFact.INVALID, R.INVALID_DESTINATION),
    ],
)
def test_an_unusable_email_starts_the_text_at_once(fact: DestinationFact, reason: R) -> None:
    made = plan(terms(email=fact), at(500))
    assert first_states(made) == ((S.SUPPRESSED, reason), (S.QUEUED, R.FALLBACK_EMAIL_SUPPRESSED))
    assert made.fallback_at is None
    assert made.stop_at == at(580)


def test_an_absent_destination_may_still_be_learnt() -> None:
    made = plan(terms(email=DestinationFact.ABSENT, sms=DestinationFact.ABSENT), at(1))
    assert (made.email.state, made.sms.state) == (S.QUEUED, S.STANDBY)


@pytest.mark.parametrize(
    ("said", "required", "reason"),
    [
        (None, False, None),
        (True, False, None),
        (False, False, R.NO_CONSENT),
        (None, True, R.NO_CONSENT),
        (True, True, None),
        (False, True, R.NO_CONSENT),
    ],
)
def test_consent_is_silence_or_yes_as_the_policy_says(
    said: bool | None, required: bool, reason: R | None
) -> None:
    policy = {"require_consent": {"email": required, "sms": required}}
    made = terms(policy, inputs=Inputs(email_consent=said, sms_consent=said))
    assert (made.email_suppression, made.sms_suppression) == (reason, reason)


def test_silence_is_permission_for_email_and_refusal_for_text() -> None:
    made = terms(inputs=Inputs())
    assert (made.email_suppression, made.sms_suppression) == (None, R.NO_CONSENT)


@pytest.mark.parametrize(("region", "permitted"), [("GB", True), ("FR", False), (None, False)])
def test_a_list_of_countries_limits_texts_and_only_texts(
    region: str | None, permitted: bool
) -> None:
    made = terms({"regions": {"sms": ["GB"]}}, inputs=Inputs(sms_consent=True, region=region))
    assert made.sms_suppression is (None if permitted else R.REGION_NOT_PERMITTED)
    assert made.email_suppression is None


def test_a_channel_without_a_provider_is_excluded() -> None:
    made = terms(available=[Channel.EMAIL])
    assert made.sms_suppression is R.EXCLUDED_BY_POLICY


def test_the_first_suppression_in_order_is_the_reason() -> None:
    worst = {
        "inputs": Inputs(sms_consent=False),
        "sms": DestinationFact.NONE,
        "available": [Channel.EMAIL],
    }
    strict = {"regions": {"sms": ["GB"]}}
    found = []
    for repair in ({}, {"available": BOTH}, {"sms": DestinationFact.GIVEN}, {"inputs": CONSENT}):
        worst |= repair
        found.append(terms(strict, **worst).sms_suppression)  # type: ignore[arg-type]
    assert found == [
        R.EXCLUDED_BY_POLICY,
        R.NO_DESTINATION,
        R.NO_CONSENT,
        R.REGION_NOT_PERMITTED,
    ]


def test_a_claim_of_the_event_comes_to_a_fact_without_the_address() -> None:
    address = Destination(Channel.EMAIL, "user@example.test")
    claims: list[DestinationClaim] = [
        Given(address, Secret("x")),
        Absent(),
        NoneThere(),
        Invalid(Secret("x")),
    ]
    assert [fact_of(each) for each in claims] == list(DestinationFact)


@given(
    mode=st.sampled_from(PolicyMode),
    email=st.sampled_from(DestinationFact),
    sms=st.sampled_from(DestinationFact),
    consent=st.sampled_from([None, True, False]),
    life=st.floats(0.1, 90_000),
    late=st.floats(-300, 90_000),
    superseded=st.booleans(),
    capped=st.booleans(),
)
def test_every_plan_is_permitted_and_consistent(
    *,
    mode: PolicyMode,
    email: DestinationFact,
    sms: DestinationFact,
    consent: bool | None,
    life: float,
    late: float,
    superseded: bool,
    capped: bool,
) -> None:
    known = terms(mode=mode, email=email, sms=sms, inputs=Inputs(consent, consent), life_s=life)
    made = plan(known, at(late), superseded=superseded, account_cap_reached=capped)
    assert is_permitted(None, made.email.state, made.email.reason)
    assert is_permitted(None, made.sms.state, made.sms.reason)
    assert (made.fallback_at is not None) is (made.sms.state is S.STANDBY)
    if made.fallback_at is not None:
        room = timedelta(seconds=known.sms_room_s)
        assert made.email.state is S.QUEUED
        assert at(late) < made.fallback_at <= known.sms_stop_at - room
    usable = made.email.may_be_used or made.sms.may_be_used
    assert (made.stop_at is not None) is usable
