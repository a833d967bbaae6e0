"""What an answer changes: total over every state and outcome, and only ever permitted moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product

import pytest

from notifier.domain.answers import Asked, Ruling, rule
from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import CLOSED, DeliveryState, is_permitted

S = DeliveryState
LATER = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
UNSENT = {S.STANDBY, S.QUEUED, S.CLAIMED}
AMBIGUOUS = (
    Reason.TIMEOUT,
    Reason.CONNECTION_LOST,
    Reason.GATEWAY_ERROR,
    Reason.UNREADABLE_ANSWER,
    Reason.WORKER_LOST,
)
OUTCOMES: tuple[Outcome, ...] = (
    Accepted("id-1"),
    Refused(Detail.INVALID_DESTINATION),
    NotAccepted(Detail.UNREACHABLE),
    *(Unknown(reason) for reason in AMBIGUOUS),  # type: ignore[arg-type]
)


def every_case() -> Iterator[tuple[Asked, Outcome]]:
    flags = (False, True)
    for state, is_open, closed, canceled, retry in product(S, flags, flags, flags, (None, LATER)):
        for outcome in OUTCOMES:
            yield Asked(state, is_open, closed, canceled, retry), outcome


def asked(
    state: DeliveryState,
    *,
    is_open: bool = True,
    closed: bool = False,
    canceled: bool = False,
    retry_at: datetime | None = LATER,
) -> Asked:
    return Asked(state, is_open, closed, canceled, retry_at)


def test_every_ruling_is_a_permitted_move_or_a_fact() -> None:
    cases = list(every_case())
    assert len(cases) == 11 * 2 * 2 * 2 * 2 * 8
    for case, outcome in cases:
        ruling = rule(case, outcome)
        if ruling.to_state is None:
            assert ruling.reason is Reason.LATE_OUTCOME
        else:
            assert is_permitted(case.state, ruling.to_state, ruling.reason), (case, ruling)


def test_p3_an_unknown_outcome_never_leads_to_another_start() -> None:
    for case, outcome in every_case():
        if isinstance(outcome, Unknown):
            assert rule(case, outcome).to_state in {None, S.UNKNOWN}


def test_p3_only_the_open_attempts_own_proof_that_nothing_left_requeues() -> None:
    for case, outcome in every_case():
        if rule(case, outcome).to_state is S.QUEUED:
            assert isinstance(outcome, NotAccepted)
            assert case.attempt_is_open
            assert case.state in {S.ATTEMPTED, S.UNKNOWN}
            assert not case.canceled
            assert case.retry_at is not None


def replayed(state: DeliveryState, *, is_replay: bool, is_open: bool = True) -> Asked:
    return Asked(
        state,
        is_open,
        closed=False,
        canceled=False,
        retry_at=LATER,
        replayed=True,
        is_replay=is_replay,
        was=Reason.GATEWAY_ERROR,
    )


TURNED_AWAY = (Refused(Detail.INVALID_DESTINATION), NotAccepted(Detail.RATE_LIMITED))


@pytest.mark.parametrize("outcome", TURNED_AWAY)
def test_p3_a_replay_that_is_turned_away_proves_nothing_about_the_first_call(
    outcome: Refused | NotAccepted,
) -> None:
    ruling = rule(replayed(S.ATTEMPTED, is_replay=True), outcome)

    assert ruling == Ruling(S.UNKNOWN, Reason.GATEWAY_ERROR, outcome.detail)


@pytest.mark.parametrize("reason", AMBIGUOUS)
def test_p3_a_replay_without_an_answer_is_unknown_for_its_own_reason(reason: Reason) -> None:
    ruling = rule(replayed(S.ATTEMPTED, is_replay=True), Unknown(reason))  # type: ignore[arg-type]

    assert ruling == Ruling(S.UNKNOWN, reason)


@pytest.mark.parametrize("state", [S.ATTEMPTED, S.UNKNOWN])
@pytest.mark.parametrize("outcome", [*TURNED_AWAY, Unknown(Reason.TIMEOUT)])
def test_p3_a_first_calls_late_no_proves_nothing_once_a_replay_began(
    state: DeliveryState, outcome: Outcome
) -> None:
    ruling = rule(replayed(state, is_replay=False), outcome)

    assert (ruling.to_state, ruling.reason) == (None, Reason.LATE_OUTCOME)


@pytest.mark.parametrize(
    ("state", "is_replay", "reason"),
    [
        (S.ATTEMPTED, True, Reason.PROVIDER_ACCEPTED),
        (S.ATTEMPTED, False, Reason.LATE_ANSWER),
        (S.UNKNOWN, True, Reason.LATE_ANSWER),
        (S.UNKNOWN, False, Reason.LATE_ANSWER),
    ],
)
def test_either_calls_yes_proves_that_the_message_was_taken(
    state: DeliveryState, is_replay: bool, reason: Reason
) -> None:
    ruling = rule(replayed(state, is_replay=is_replay), Accepted("id-1"))

    assert ruling == Ruling(S.ACCEPTED, reason)
    assert is_permitted(state, S.ACCEPTED, reason)


def test_p3_with_a_replay_only_a_yes_ever_moves_what_is_not_under_way() -> None:
    for state, outcome, is_replay, is_open in product(S, OUTCOMES, (False, True), (False, True)):
        ruling = rule(replayed(state, is_replay=is_replay, is_open=is_open), outcome)
        if ruling.to_state is None or isinstance(outcome, Accepted):
            continue
        assert (state, is_replay, is_open) == (S.ATTEMPTED, True, True)
        assert ruling.to_state is S.UNKNOWN


def test_p12_what_is_closed_stays_closed() -> None:
    for case, outcome in every_case():
        if case.state in CLOSED:
            assert rule(case, outcome).to_state is None


def test_after_expiry_only_the_holders_own_answer_still_ends_its_attempt() -> None:
    for case, outcome in every_case():
        if case.closed and not (case.state is S.ATTEMPTED and case.attempt_is_open):
            assert rule(case, outcome).to_state is None
    assert rule(asked(S.ATTEMPTED, closed=True), Accepted()).to_state is S.ACCEPTED


@pytest.mark.parametrize("state", [S.ACCEPTED, S.DELIVERED])
def test_a_receipt_that_came_first_stands(state: DeliveryState) -> None:
    for is_open, outcome in product((False, True), OUTCOMES):
        assert rule(asked(state, is_open=is_open), outcome).to_state is None


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Accepted("id-1"), Ruling(S.ACCEPTED, Reason.PROVIDER_ACCEPTED)),
        (
            Refused(Detail.CONTENT_REJECTED),
            Ruling(S.FAILED, Reason.REFUSED, Detail.CONTENT_REJECTED),
        ),
        (
            NotAccepted(Detail.RATE_LIMITED),
            Ruling(S.QUEUED, Reason.NOT_ACCEPTED, Detail.RATE_LIMITED),
        ),
        *((Unknown(reason), Ruling(S.UNKNOWN, reason)) for reason in AMBIGUOUS),  # type: ignore[arg-type]
    ],
)
def test_the_holders_answer_ends_its_attempt(outcome: Outcome, expected: Ruling) -> None:
    assert rule(asked(S.ATTEMPTED), outcome) == expected


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Accepted(), Ruling(S.ACCEPTED, Reason.LATE_ANSWER)),
        (Refused(Detail.BLOCKED), Ruling(S.FAILED, Reason.LATE_ANSWER, Detail.BLOCKED)),
        (
            NotAccepted(Detail.UNREACHABLE),
            Ruling(S.QUEUED, Reason.NOT_ACCEPTED, Detail.UNREACHABLE),
        ),
        (Unknown(Reason.TIMEOUT), Ruling(None, Reason.LATE_OUTCOME)),
    ],
)
def test_p3_a_late_answer_resolves_what_was_unknown(outcome: Outcome, expected: Ruling) -> None:
    assert rule(asked(S.UNKNOWN), outcome) == expected


@pytest.mark.parametrize("state", [S.ATTEMPTED, S.UNKNOWN])
def test_proven_not_sent_without_time_or_after_a_cancel_starts_nothing(
    state: DeliveryState,
) -> None:
    outcome = NotAccepted(Detail.UNREACHABLE)

    no_time = rule(asked(state, retry_at=None), outcome)
    canceled = rule(asked(state, canceled=True), outcome)

    assert no_time == Ruling(S.FAILED, Reason.NOT_ACCEPTED_NO_TIME_LEFT, Detail.UNREACHABLE)
    assert canceled == Ruling(S.CANCELED, Reason.CANCELED_BEFORE_RETRY, Detail.UNREACHABLE)


@pytest.mark.parametrize("state", sorted(UNSENT))
def test_p1_an_earlier_attempt_that_was_taken_after_all_stops_the_retry(
    state: DeliveryState,
) -> None:
    ruling = rule(asked(state, is_open=False), Accepted())

    assert ruling == Ruling(S.ACCEPTED, Reason.EARLIER_ATTEMPT_FOUND)
