"""Waits grow, are jittered, and never reach the stop time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.backoff import LINK_JITTER, next_link_try_at, next_retry_at
from notifier.domain.policy import default_policy

NOW = datetime(2026, 5, 3, 14, 0, tzinfo=UTC)
POLICY = default_policy()


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def test_the_waits_are_those_of_the_policy() -> None:
    due = [
        next_retry_at(POLICY, failures=n, now=NOW, stop_at=NOW + seconds(999), rand=lambda: 0.5)
        for n in (1, 2, 3, 4)
    ]
    assert due == [NOW + seconds(s) for s in (30, 120, 300, 300)]


def test_a_wait_that_reaches_the_stop_time_is_no_wait() -> None:
    def at(stop_s: float) -> datetime | None:
        stop = NOW + seconds(stop_s)
        return next_retry_at(POLICY, failures=1, now=NOW, stop_at=stop, rand=lambda: 0.5)

    assert at(29) is None
    assert at(30) is None
    assert at(30.000001) == NOW + seconds(30)


def test_jitter_alone_never_costs_the_last_try() -> None:
    stop = NOW + seconds(31)
    due = next_retry_at(POLICY, failures=1, now=NOW, stop_at=stop, rand=lambda: 0.999)
    assert due == NOW + seconds(30)


def test_a_longer_wait_asked_for_by_the_provider_is_honoured() -> None:
    stop = NOW + seconds(500)
    due = next_retry_at(
        POLICY, failures=1, now=NOW, stop_at=stop, rand=lambda: 0.0, asked_wait_s=45
    )
    assert due == NOW + seconds(45)


def test_a_wait_of_a_day_or_of_ages_means_no_time_left() -> None:
    stop = NOW + seconds(500)
    for asked in (86_400.0, 1e300):
        due = next_retry_at(
            POLICY, failures=1, now=NOW, stop_at=stop, rand=lambda: 0.5, asked_wait_s=asked
        )
        assert due is None


def test_the_link_is_asked_for_again_after_one_two_five_ten_ten() -> None:
    stop = NOW + seconds(60)
    due = [
        next_link_try_at(failures=n, now=NOW, stop_at=stop, rand=lambda: 0.5)
        for n in (1, 2, 3, 4, 5)
    ]
    assert due == [NOW + seconds(s) for s in (1, 2, 5, 10, 10)]


def test_no_link_is_asked_for_at_the_stop_time() -> None:
    stop = NOW + seconds(10)
    assert next_link_try_at(failures=4, now=NOW, stop_at=stop, rand=lambda: 0.5) is None


@given(
    failures=st.integers(1, 50),
    chance=st.floats(0, 1, exclude_max=True),
    life=st.floats(0, 1000),
)
def test_no_try_is_ever_due_at_or_after_the_stop_time(
    failures: int, chance: float, life: float
) -> None:
    stop = NOW + seconds(life)
    retry = next_retry_at(POLICY, failures=failures, now=NOW, stop_at=stop, rand=lambda: chance)
    link = next_link_try_at(failures=failures, now=NOW, stop_at=stop, rand=lambda: chance)
    assert all(due is None or NOW < due < stop for due in (retry, link))


@given(chance=st.floats(0, 1, exclude_max=True))
def test_jitter_keeps_to_its_share(chance: float) -> None:
    stop = NOW + seconds(60)
    due = next_link_try_at(failures=4, now=NOW, stop_at=stop, rand=lambda: chance)
    assert due is not None
    waited = (due - NOW).total_seconds()
    assert 10 * (1 - LINK_JITTER) <= waited <= 10 * (1 + LINK_JITTER)
