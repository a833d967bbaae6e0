"""Proposals from distributions whose percentiles are known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.policy import default_policy, parse_policy
from notifier.domain.proposals import (
    Measured,
    Proposal,
    Waits,
    least_samples,
    percentile,
    proposals,
    proposed_document,
    rounded_up,
    summary,
    upper_end,
)
from notifier.domain.states import Channel

POLICY = default_policy()
EMAIL, SMS = Channel.EMAIL, Channel.SMS

Quantile = Callable[[float], float]


def uniform(share: float) -> float:
    """Between 0 and 100 s: the 99th percentile is 99 s."""
    return 100 * share


def lognormal(share: float) -> float:
    """Median 4 s, sigma 1: the 99th percentile is 4 exp(2.3263) = 40.96 s."""
    return 4 * math.exp(NormalDist().inv_cdf(share))


def bimodal(share: float) -> float:
    """97 of 100 take 2 to 3 s, the others 60 to 90 s: the 99th percentile is 80 s."""
    return 2 + share / 0.97 if share <= 0.97 else 60 + 30 * (share - 0.97) / 0.03


DISTRIBUTIONS = {
    "uniform": (uniform, 99.0),
    "lognormal": (lognormal, 40.96),
    "bimodal": (bimodal, 80.0),
}


def drawn(quantile: Quantile, number: int, seed: int = 1) -> list[float]:
    """Waits by the inverse of the distribution function."""
    chance = random.Random(seed)
    return [quantile(chance.uniform(1e-9, 1 - 1e-9)) for _ in range(number)]


def spread(quantile: Quantile, number: int) -> list[float]:
    """The distribution itself, at evenly spread shares."""
    return [quantile((place + 0.5) / number) for place in range(number)]


def of(waits: Waits, queue: Waits | None = None) -> Measured:
    both = {EMAIL: waits, SMS: waits}
    quick = queue or Waits(spread(lambda share: share, 1000))
    return Measured(
        queue={EMAIL: quick, SMS: quick},
        provider={EMAIL: quick, SMS: quick},
        carrier=both,
        news=both,
    )


def by_key(measured: Measured) -> dict[str, Proposal]:
    return {each.key: each for each in proposals(POLICY, measured)}


# --- percentiles


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_upper_end_is_just_above_the_known_percentile(name: str) -> None:
    quantile, p99 = DISTRIBUTIONS[name]
    waits = sorted(spread(quantile, 20_000))
    top = upper_end(waits, len(waits), 0.99)
    assert top is not None
    assert quantile(0.99) == pytest.approx(p99, rel=0.001)
    assert p99 < top < quantile(0.992)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_upper_end_covers_the_percentile_as_often_as_it_says(name: str) -> None:
    quantile, p99 = DISTRIBUTIONS[name]
    covered = 0
    for seed in range(400):
        top = upper_end(sorted(drawn(quantile, 600, seed)), 600, 0.99)
        assert top is not None
        covered += top >= p99
    assert covered / 400 > 0.92, "95 % are promised; 400 tries scatter by 1 %"


def test_a_percentile_needs_299_waits_for_95_percent_confidence() -> None:
    assert least_samples() == 299
    waits = sorted(spread(uniform, 299))
    assert upper_end(waits, 299, 0.99) == waits[-1]
    assert upper_end(waits[:298], 298, 0.99) is None


def test_ranks_are_the_nearest() -> None:
    waits = [float(place) for place in range(1, 101)]
    assert [percentile(waits, 100, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([], 0, 0.5) is None


def test_a_summary_counts_those_that_never_ended_as_the_slowest() -> None:
    told = summary(Waits([float(place) for place in range(1, 91)], never_ended=10))
    assert (told.number, told.never_ended) == (100, 10)
    assert (told.p50, told.p95, told.p99, told.p99_at_most) == (50, None, None, None)


# --- margins


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_margin_is_the_carriers_p99_and_the_calls_limit_rounded_up(name: str) -> None:
    quantile, _ = DISTRIBUTIONS[name]
    waits = Waits(spread(quantile, 5_000))
    top = upper_end(sorted(waits.ended), 5_000, 0.99)
    assert top is not None
    margin = by_key(of(waits))["safety_margin_s.sms"]
    assert margin.proposed == rounded_up(top + 10)
    assert "+ call time limit 10 s =" in margin.arithmetic
    assert f"rounded up to {margin.proposed:g} s" in margin.arithmetic


def test_the_arithmetic_stands_in_numbers() -> None:
    margin = by_key(of(Waits([41.0] * 500)))["safety_margin_s.email"]
    assert (margin.today, margin.proposed) == (15, 55)
    assert margin.arithmetic == (
        "p99 of the carrier 41 s (41 s in 500, 95 % confidence) + call time limit 10 s = 51 s, "
        "rounded up to 55 s"
    )


def test_too_few_waits_propose_nothing_and_say_how_many_are_needed() -> None:
    made = by_key(of(Waits([1.0] * 298), queue=Waits([1.0] * 10)))
    assert {each.proposed for each in made.values()} == {None}
    assert "298 waits of the carrier were measured" in made["safety_margin_s.sms"].arithmetic
    assert "at least 299" in made["safety_margin_s.sms"].arithmetic
    assert proposed_document(POLICY, list(made.values())) == POLICY.to_document()


def test_no_measurements_at_all_are_refused() -> None:
    assert [each.proposed for each in proposals(POLICY, Measured())] == [None] * 4


# --- censoring


def test_deliveries_that_were_never_reported_never_lower_a_margin() -> None:
    """A carrier that takes longer than the request lives for 5 in 1,000: they are cut off."""
    cut_off = [each for each in spread(lognormal, 2_000) if each <= lognormal(0.995)]
    censored = Waits(cut_off, never_ended=2_000 - len(cut_off))
    whole = by_key(of(Waits(spread(lognormal, 2_000))))["safety_margin_s.sms"]
    margin = by_key(of(censored))["safety_margin_s.sms"]
    ignored = by_key(of(Waits(cut_off)))["safety_margin_s.sms"]

    assert censored.never_ended == 10
    assert margin.proposed == whole.proposed
    assert margin.proposed is not None
    assert ignored.proposed is not None
    assert ignored.proposed <= margin.proposed
    assert "10 of 2000 were never reported and count as slower" in margin.arithmetic


def test_where_the_p99_lies_among_the_never_reported_nothing_is_proposed() -> None:
    margin = by_key(of(Waits([5.0] * 980, never_ended=20)))["safety_margin_s.sms"]
    assert margin.proposed is None
    assert "20 of 1000 waits of the carrier were never seen to end" in margin.arithmetic
    assert "among those that were, the p99 is 5 s" in margin.arithmetic


@given(st.integers(300, 900), st.integers(0, 40), st.integers(0, 40))
def test_more_waits_that_never_ended_can_only_raise_the_upper_end(
    number: int, few: int, more: int
) -> None:
    waits = spread(uniform, number)
    low, high = (upper_end(waits, number + each, 0.99) for each in (few, few + more))
    assert high is None or (low is not None and low <= high)


def test_the_window_leaves_out_what_no_window_would_have_seen_and_says_so() -> None:
    window = by_key(of(Waits([40.0] * 500, never_ended=50)))["observation_window.cap_s"]
    assert window.proposed is not None
    assert "50 that never ended left out" in window.arithmetic


# --- reserve and window


def test_the_reserve_holds_a_sweep_the_queue_a_call_and_the_new_margin() -> None:
    made = by_key(of(Waits([100.0] * 500), queue=Waits([30.0] * 500)))
    reserve = made["fallback_reserve.floor_s"]
    assert made["safety_margin_s.sms"].proposed == 110
    assert reserve.proposed == 220
    assert "sweep 5 s + p99 of the text queue 30 s" in reserve.arithmetic
    assert "twice the longer margin, 2 x 110 s = 220 s" in reserve.arithmetic
    raised = "rounded up to 220 s, with the most that is reserved raised to it from 120 s"
    assert reserve.arithmetic.endswith(raised)
    assert reserve.values == {"fallback_reserve": {"floor_s": 220, "cap_s": 220}}


def test_the_window_is_how_long_news_can_take_and_never_less_than_a_call_and_a_poll() -> None:
    made = by_key(of(Waits([150.0] * 500), queue=Waits([2.0] * 500)))
    assert made["observation_window.cap_s"].proposed == 155
    quick = by_key(of(Waits([1.0] * 500)))["observation_window.cap_s"]
    assert quick.proposed == 70
    assert "call + poll = 70 s" in quick.arithmetic


@given(
    st.floats(0, 400),
    st.floats(0, 400),
    st.floats(0, 200),
    st.integers(250, 700),
    st.integers(0, 12),
)
def test_a_policy_with_every_proposal_in_it_always_passes_its_own_checks(
    carrier: float, other: float, queue: float, number: int, never: int
) -> None:
    measured = replace(
        of(Waits([carrier] * number, never), Waits([queue] * number)),
        carrier={EMAIL: Waits([other] * number, never), SMS: Waits([carrier] * 400)},
    )
    parse_policy(proposed_document(POLICY, proposals(POLICY, measured)))
