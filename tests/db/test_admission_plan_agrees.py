"""The admission statement finishes the decision exactly as `domain/admission_plan.plan` does."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from notifier.domain.admission_plan import AdmissionTerms, plan
from notifier.domain.event import PolicyMode
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel
from notifier.flow.admission import _term_columns
from notifier.store.ledger import admission as ledger
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import TRANSPORT, Rig
from tests.db.test_foundation import NOON

# Most are of the common kind, or hardly any would come to the last rules.
SUPPRESSIONS = st.sampled_from(
    [
        *[None] * 8,
        Reason.NO_DESTINATION,
        Reason.INVALID_DESTINATION,
        Reason.NO_CONSENT,
        Reason.EXCLUDED_BY_POLICY,
    ]
)
MODES = st.sampled_from([*PolicyMode, *[PolicyMode.EMAIL_THEN_SMS] * 6])
SECONDS = st.integers(0, 1200) | st.integers(0, 1_200_000_000).map(lambda micros: micros / 1e6)
RARELY = st.sampled_from([False, False, False, True])
# The edges are where two rules meet, so the moment of receipt is drawn near them too.
MOMENTS = st.floats(-30, 700).map(lambda seconds: round(seconds, 6)) | st.sampled_from(
    [0.0, 599.999999, 600.0, 600.000001]
)


@st.composite
def terms(draw: st.DrawFn) -> AdmissionTerms:
    expires_at = NOON + timedelta(seconds=600)
    return AdmissionTerms(
        mode=draw(MODES),
        email_suppression=draw(SUPPRESSIONS),
        sms_suppression=draw(SUPPRESSIONS | st.just(Reason.REGION_NOT_PERMITTED)),
        email_stop_at=expires_at - timedelta(seconds=draw(SECONDS)),
        sms_stop_at=expires_at - timedelta(seconds=draw(SECONDS)),
        expires_at=expires_at,
        window_s=draw(SECONDS),
        reserve_s=draw(SECONDS),
        min_wait_s=draw(SECONDS),
        sms_room_s=draw(SECONDS),
    )


EARLIER = """
    INSERT INTO admission (notice_id, event_id, idempotency_key, reset_request_id, account_id,
        requested_at, admitted_at, supersedes, content_digest, expires_at)
    SELECT id, id::text, id::text, id::text, %s, %s, %s, %s, '', %s
      FROM (SELECT gen_random_uuid()) AS made (id)
"""


def seen_before(rig: Rig, values: AdmissionTerms, *, superseded: bool, capped: bool) -> None:
    """What the account already had when the event comes."""
    rig.run("ALTER TABLE admission DISABLE TRIGGER admission_append_only")
    rig.run("DELETE FROM admission")
    long_ago = NOON - timedelta(days=1)
    if superseded:
        later = NOON + timedelta(microseconds=1)
        rig.run(EARLIER, "acc", later, long_ago, True, values.expires_at)
    if capped:
        rig.run(EARLIER, "acc", long_ago, rig.now(), False, values.expires_at)


def admit(rig: Rig, values: AdmissionTerms) -> UUID:
    event = rig.event(
        mode=values.mode, account_id="acc", requested_at=NOON, expires_at=values.expires_at
    )
    parameters: dict[str, Any] = {
        **rig.admission._values(event, TRANSPORT, uuid4().bytes),
        **_term_columns(values),
        "cap": 1,
    }
    with rig.database.connection() as connection:
        stored, _ = ledger.admit(connection, parameters, [])
    assert isinstance(stored, ledger.Stored)
    assert stored.created
    return stored.notice_id


TOO_SHORT = AdmissionTerms(
    mode=PolicyMode.EMAIL_THEN_SMS,
    email_suppression=None,
    sms_suppression=None,
    email_stop_at=NOON + timedelta(seconds=570),
    sms_stop_at=NOON + timedelta(seconds=570),
    expires_at=NOON + timedelta(seconds=600),
    window_s=300.0,
    reserve_s=120.0,
    min_wait_s=70.0,
    sms_room_s=270.000001,
)
"""By a microsecond: from minute five on there are 270 s to the text's stop time."""
LONG_ENOUGH = replace(TOO_SHORT, sms_room_s=270.0)


@example(values=TOO_SHORT, after=0.0, superseded=False, capped=False)
@example(values=LONG_ENOUGH, after=0.0, superseded=False, capped=False)
@settings(
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(values=terms(), after=MOMENTS, superseded=RARELY, capped=RARELY)
def test_p12_the_statement_and_the_rule_decide_alike(
    rig: Rig, clock: Clock, values: AdmissionTerms, after: float, superseded: bool, capped: bool
) -> None:
    received_at: datetime = clock.freeze(NOON + timedelta(seconds=after))
    expected = plan(values, received_at, superseded=superseded, account_cap_reached=capped)
    seen_before(rig, values, superseded=superseded, capped=capped)

    notice_id = admit(rig, values)

    for channel, planned in ((Channel.EMAIL, expected.email), (Channel.SMS, expected.sms)):
        delivery = rig.delivery(notice_id, channel)
        assert (delivery["state"], delivery["reason"]) == (planned.state, planned.reason)
    assert rig.notice(notice_id)["fallback_at"] == expected.fallback_at
    own = rig.one("SELECT stop_at FROM admission WHERE notice_id = %s", notice_id)
    assert own["stop_at"] == expected.stop_at


def test_a_text_in_reserve_says_on_the_trail_when_it_is_decided(
    make_rig: MakeRig, clock: Clock
) -> None:
    both = make_rig(channels=(Channel.EMAIL, Channel.SMS))
    clock.freeze(NOON)
    notice_id = both.admit_for_both()

    reserved = both.trail(notice_id)[-1]

    assert reserved["reason"] == "fallback_reserved"
    assert reserved["evidence"] == {"fallback_at": "2026-03-01T12:05:00.000000Z"}
    assert both.notice(notice_id)["fallback_at"] == NOON + timedelta(minutes=5)
