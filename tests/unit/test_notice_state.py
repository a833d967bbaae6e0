"""The notice's state over every pair of deliveries there can be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from notifier.domain.notice_state import (
    Basis,
    DeliveryFacts,
    notice_state,
    notice_state_flat,
)
from notifier.domain.states import DeliveryState as S
from notifier.domain.states import NoticeState as N

STATES = [None, *S]
BUSY = {S.QUEUED, S.CLAIMED, S.ATTEMPTED, S.UNKNOWN, S.ACCEPTED}
ENDED = {S.FAILED, S.SUPPRESSED, S.EXPIRED, S.CANCELED, None}
Row = tuple[S | None, bool, S | None, bool, bool, bool]


def every_row() -> Iterator[Row]:
    flags = (False, True)
    yield from product(STATES, flags, STATES, flags, flags, flags)


def has_arrived(state: S | None, final: bool) -> bool:
    return state is S.DELIVERED or (state is S.ACCEPTED and final)


def test_every_pair_has_one_state_and_only_complete_has_a_basis() -> None:
    rows = list(every_row())
    assert len(rows) == 12 * 2 * 12 * 2 * 2 * 2
    for row in rows:
        state, basis = notice_state_flat(*row)
        assert (state is N.COMPLETE) is (basis is not None)


def test_rule_1_complete_is_exactly_what_has_arrived() -> None:
    for row in every_row():
        arrived = has_arrived(row[0], row[1]) or has_arrived(row[2], row[3])
        assert (notice_state_flat(*row)[0] is N.COMPLETE) is arrived


def test_rule_1_the_stronger_basis_is_named() -> None:
    both = notice_state_flat(S.ACCEPTED, True, S.DELIVERED, False, True, False)
    assert both == (N.COMPLETE, Basis.DELIVERED)
    one = notice_state_flat(S.ACCEPTED, True, S.STANDBY, False, True, False)
    assert one == (N.COMPLETE, Basis.ACCEPTED)


def remaining() -> Iterator[tuple[S | None, S | None, bool, N]]:
    """Every row that is neither complete nor canceled."""
    for email, email_final, sms, sms_final, is_fallback, canceled in every_row():
        if has_arrived(email, email_final) or has_arrived(sms, sms_final) or canceled:
            continue
        row = (email, email_final, sms, sms_final, is_fallback, canceled)
        yield email, sms, is_fallback, notice_state_flat(*row)[0]


def test_rule_2_a_cancel_outranks_all_but_arrival() -> None:
    for row in every_row():
        if row[5] and not (has_arrived(row[0], row[1]) or has_arrived(row[2], row[3])):
            assert notice_state_flat(*row) == (N.CANCELED, None)


def test_rules_3_and_4_whoever_is_on_the_way_is_pending() -> None:
    for email, sms, is_fallback, state in remaining():
        if sms in BUSY and (is_fallback or email not in BUSY):
            assert state is N.TEXT_PENDING
        elif email in BUSY:
            assert state is N.EMAIL_PENDING


def test_rule_5_a_reserve_is_pending_once_the_other_has_ended() -> None:
    for email, sms, _, state in remaining():
        if email is S.STANDBY and sms in ENDED:
            assert state is N.EMAIL_PENDING
        if sms is S.STANDBY and email in ENDED:
            assert state is N.TEXT_PENDING


def test_rules_6_to_8_tell_how_it_ended() -> None:
    for email, sms, _, state in remaining():
        if email in ENDED and sms in ENDED:
            pair = {email, sms}
            expected = (
                N.EXPIRED if S.EXPIRED in pair else N.FAILED if S.FAILED in pair else N.SUPPRESSED
            )
            assert state is expected


@pytest.mark.parametrize(
    ("email", "sms", "is_fallback", "expected"),
    [
        (S.QUEUED, S.STANDBY, True, N.EMAIL_PENDING),
        (S.UNKNOWN, S.QUEUED, True, N.TEXT_PENDING),
        (S.STANDBY, S.ATTEMPTED, True, N.TEXT_PENDING),
        (S.STANDBY, S.FAILED, True, N.EMAIL_PENDING),
        (S.QUEUED, S.QUEUED, False, N.EMAIL_PENDING),
        (S.FAILED, S.QUEUED, False, N.TEXT_PENDING),
        (S.SUPPRESSED, S.QUEUED, False, N.TEXT_PENDING),
        (S.ACCEPTED, S.STANDBY, True, N.EMAIL_PENDING),
        (S.FAILED, S.EXPIRED, True, N.EXPIRED),
        (S.FAILED, S.SUPPRESSED, True, N.FAILED),
        (S.SUPPRESSED, S.SUPPRESSED, True, N.SUPPRESSED),
        (S.EXPIRED, S.EXPIRED, True, N.EXPIRED),
    ],
)
def test_common_pairs_read_as_expected(email: S, sms: S, is_fallback: bool, expected: N) -> None:
    state, _ = notice_state(
        DeliveryFacts(email), DeliveryFacts(sms), canceled=False, sms_is_fallback=is_fallback
    )
    assert state is expected


def test_a_notice_of_one_delivery_is_judged_by_it() -> None:
    final = DeliveryFacts(S.ACCEPTED, acceptance_is_final=True)
    assert notice_state(final, None, canceled=False) == (N.COMPLETE, Basis.ACCEPTED)
    assert notice_state(None, DeliveryFacts(S.CLAIMED), canceled=False) == (N.TEXT_PENDING, None)
