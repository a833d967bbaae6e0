"""Which signal was first: limits over windows, and what is not known never counts as good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from notifier.signals import thresholds
from notifier.signals.limits import limits_of
from notifier.signals.thresholds import Signal
from notifier.store.reads.rollups import MINUTE, Minute, Waits

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
RULES = thresholds.rules(limits_of({}, 600.0))
CALM = {"created": 10, "accepted": 10}


def at(minute: int) -> datetime:
    return NOON + minute * MINUTE


def story(length: int, **events: dict[int, int]) -> list[Minute]:
    """Calm minutes; `events` says in which minute which signal shows how often."""
    return [
        Minute(at(place), CALM | {name: by[place] for name, by in events.items() if place in by},
               Waits())
        for place in range(length)
    ]  # fmt: skip


def crossed(minutes: list[Minute]) -> list[tuple[Signal, int]]:
    return [
        (each.rule.signal, (each.at - NOON) // MINUTE)
        for each in thresholds.first_crossings(RULES, minutes)
    ]


def test_a_calm_time_crosses_nothing() -> None:
    assert crossed(story(30)) == []


@pytest.mark.parametrize(
    ("events", "signal", "minute"),
    [
        ({"expired": {7: 1}}, Signal.EXPIRED, 7),
        ({"rescued": {3: 2, 6: 3}}, Signal.RESCUES, 6),
        ({"unmapped": {4: 2}}, Signal.UNMAPPED, 4),
        ({"callback_refused": {2: 4, 5: 6}}, Signal.CALLBACKS_REFUSED, 5),
        ({"unknown": {1: 1, 6: 9}}, Signal.UNKNOWN_SHARE, 6),
        ({"refused": {8: 9}, "failed": {9: 9}}, Signal.FAILURE_SHARE, 9),
    ],
)
def test_each_signal_crosses_in_the_minute_that_makes_it_too_much(
    events: dict[str, dict[int, int]], signal: Signal, minute: int
) -> None:
    assert crossed(story(12, **events)) == [(signal, minute)]


def test_a_share_that_grows_by_what_leaves_its_window_is_told_where_it_happened() -> None:
    before = [Minute(at(place), {"accepted": 100}, Waits()) for place in range(4)]
    trouble = [Minute(at(4), {"accepted": 10, "failed": 12}, Waits())]
    after = [Minute(at(5 + place), {}, Waits()) for place in range(6)]
    assert crossed(before + trouble) == []
    assert crossed(before + trouble + after) == [(Signal.FAILURE_SHARE, 4)]


def test_signals_stand_in_the_order_in_which_they_crossed() -> None:
    minutes = story(12, expired={9: 3}, unknown={4: 30}, rescued={6: 5})
    assert crossed(minutes) == [
        (Signal.UNKNOWN_SHARE, 4), (Signal.RESCUES, 6), (Signal.EXPIRED, 9),
    ]  # fmt: skip


def test_a_share_of_almost_nothing_is_not_judged() -> None:
    few = [Minute(at(place), {"accepted": 1, "unknown": 1} if place == 5 else {}, Waits())
           for place in range(10)]  # fmt: skip
    assert crossed(few) == []


def test_the_queue_is_judged_by_what_95_of_100_waited() -> None:
    minutes = story(5)
    minutes[3] = Minute(at(3), CALM, Waits(9, 10, 61, 90))
    assert crossed(minutes) == [(Signal.QUEUE_AGE, 3)]


def test_p11_a_gap_is_a_signal_of_its_own_and_not_a_calm_time() -> None:
    minutes = story(10)
    for place in (5, 6):
        minutes[place] = Minute(at(place))
    assert crossed(minutes) == [(Signal.COLLECTOR_GAP, 6)]


def test_what_was_before_the_first_count_is_no_gap() -> None:
    minutes = [Minute(at(place)) for place in range(5)]
    assert crossed(minutes) == []
    assert crossed([*minutes, Minute(at(5), CALM, Waits())]) == []


def test_the_policy_sets_the_limits_for_the_life_of_the_tokens() -> None:
    def limit_s(life_s: float, **alert: float) -> float:
        rules = thresholds.rules(limits_of(alert, life_s))
        return next(each.limit for each in rules if each.signal is Signal.QUEUE_AGE)

    assert (limit_s(600.0), limit_s(100.0), limit_s(600.0, queue_age_s=5)) == (60, 10, 5)
    minutes = story(15, expired={0: 1, 14: 1})
    twice = thresholds.rules(limits_of({"expired_unsent_per_15_min": 2}, 600.0))
    [crossing] = thresholds.first_crossings(twice, minutes)
    assert (crossing.at, crossing.value) == (NOON + timedelta(minutes=14), 2)


@pytest.mark.parametrize(
    ("name", "higher", "events", "was", "then"),
    [
        ("rescues_at_least", 8, {"rescued": {3: 5, 6: 5}}, 3, 6),
        ("callback_refusals_per_5_min", 12, {"callback_refused": {2: 10, 5: 6}}, 2, 5),
        ("unmapped_per_hour", 3, {"unmapped": {4: 1, 9: 2}}, 4, 9),
        ("failure_share", 0.4, {"failed": {4: 18, 7: 30}}, 4, 7),
        ("unknown_share", 0.2, {"unknown": {4: 9, 7: 9}}, 4, 7),
        ("unknown_baseline", 0.09, {"unknown": {4: 9, 7: 90}}, 4, 7),
        ("chance", 1e-12, {"unknown": {4: 8, 7: 90}}, 4, 7),
        ("avoidable_share", 0.5, {"fallback": {0: 40}, "avoidable": {4: 15, 9: 15}}, 4, 9),
        ("expired_unsent_per_15_min", 2, {"expired": {3: 1, 8: 1}}, 3, 8),
    ],
)
def test_each_limit_is_the_policys(
    name: str, higher: float, events: dict[str, dict[int, int]], was: int, then: int
) -> None:
    def minute(**alert: float) -> int:
        rules = thresholds.rules(limits_of(alert, 600.0))
        [crossing] = thresholds.first_crossings(rules, story(12, **events))
        return (crossing.at - NOON) // MINUTE

    assert (minute(), minute(**{name: higher})) == (was, then)
