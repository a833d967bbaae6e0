"""What a receipt means: total over every state and status, and blind to the order of arrival."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import Known, ReceiptStatus, judge
from notifier.domain.states import CLOSED, DeliveryState, is_permitted

S = DeliveryState
TELLING = (ReceiptStatus.ACCEPTED, ReceiptStatus.DELIVERED, ReceiptStatus.FAILED)
IN_FLIGHT = (S.ATTEMPTED, S.UNKNOWN)


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("is_latest", [True, False])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(("state", "status"), list(product(S, ReceiptStatus)))
def test_every_receipt_in_every_state_is_a_permitted_move_or_only_a_fact(
    state: DeliveryState, status: ReceiptStatus, *, closed: bool, is_latest: bool, asked: bool
) -> None:
    verdict = judge(Known(state, closed, is_latest), status, Detail.BLOCKED, asked=asked)
    if verdict.to_state is not None:
        assert is_permitted(state, verdict.to_state, verdict.reason)
        assert not closed
        assert state not in CLOSED


def after(state: DeliveryState, *statuses: ReceiptStatus) -> DeliveryState:
    for status in statuses:
        verdict = judge(Known(state, closed=False, is_latest=True), status, None)
        state = verdict.to_state or state
    return state


@given(
    start=st.sampled_from(IN_FLIGHT),
    statuses=st.lists(st.sampled_from(ReceiptStatus), max_size=5),
    data=st.data(),
)
def test_p12_the_order_in_which_receipts_arrive_changes_nothing(
    start: DeliveryState, statuses: list[ReceiptStatus], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(statuses))
    assert after(start, *statuses) == after(start, *shuffled)


@given(start=st.sampled_from(IN_FLIGHT), statuses=st.lists(st.sampled_from(TELLING), min_size=1))
def test_the_highest_fact_stands(start: DeliveryState, statuses: list[ReceiptStatus]) -> None:
    ranked = {ReceiptStatus.ACCEPTED: 1, ReceiptStatus.DELIVERED: 2, ReceiptStatus.FAILED: 3}
    highest = max(statuses, key=ranked.__getitem__)
    assert after(start, *statuses) == DeliveryState(highest)


def test_a_hard_failure_outranks_delivered_until_expiry() -> None:
    known = Known(S.DELIVERED, closed=False, is_latest=True)
    verdict = judge(known, ReceiptStatus.FAILED, Detail.MAILBOX_FULL)
    assert (verdict.to_state, verdict.reason) == (S.FAILED, Reason.BOUNCED_AFTER_DELIVERY)
    assert verdict.detail is Detail.MAILBOX_FULL

    late = judge(Known(S.DELIVERED, closed=True, is_latest=True), ReceiptStatus.FAILED, None)
    assert (late.to_state, late.reason) == (None, Reason.CONTRADICTING_RECEIPT)


def test_what_comes_after_the_end_is_told_apart() -> None:
    expired = judge(Known(S.EXPIRED, closed=True, is_latest=True), ReceiptStatus.DELIVERED, None)
    assert (expired.to_state, expired.reason) == (None, Reason.LATE_RECEIPT)
    failed = judge(Known(S.FAILED, closed=False, is_latest=True), ReceiptStatus.DELIVERED, None)
    assert (failed.to_state, failed.reason) == (None, Reason.CONTRADICTING_RECEIPT)


@pytest.mark.parametrize("state", [S.QUEUED, S.CLAIMED, S.STANDBY])
def test_p3_a_receipt_for_an_earlier_attempt_stops_the_retry(state: DeliveryState) -> None:
    verdict = judge(Known(state, closed=False, is_latest=True), ReceiptStatus.DELIVERED, None)
    assert (verdict.to_state, verdict.reason) == (S.DELIVERED, Reason.EARLIER_ATTEMPT_FOUND)


def test_the_failure_of_an_earlier_attempt_says_nothing_about_the_newest() -> None:
    known = Known(S.ACCEPTED, closed=False, is_latest=False)
    verdict = judge(known, ReceiptStatus.FAILED, Detail.BLOCKED)
    assert (verdict.to_state, verdict.reason) == (None, Reason.FACT_RECEIPT)


def test_what_was_looked_up_is_called_reconciled_only_where_it_ends_an_unknown() -> None:
    for state, reason in ((S.UNKNOWN, Reason.RECONCILED), (S.ACCEPTED, Reason.RECEIPT)):
        known = Known(state, closed=False, is_latest=True)
        assert judge(known, ReceiptStatus.DELIVERED, None, asked=True).reason is reason
