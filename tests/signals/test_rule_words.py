"""What an alert says of itself: a number has its noun."""

from __future__ import annotations

import pytest

from notifier.signals.judgements import RuleName
from notifier.signals.limits import limits_of
from notifier.signals.rule_words import affected_of, value_of
from notifier.signals.rules_of_counts import BY_COUNTS
from notifier.signals.rules_of_state import BY_STATE
from notifier.signals.thresholds import Unit
from notifier.store.reads.signals import Ready
from notifier.store.reads.signals_beside import Turned
from notifier.store.reads.signals_heard import Heard
from tests.signals.test_rules import counts, readings


@pytest.mark.parametrize(
    ("rule", "value", "unit", "words"),
    [
        (RuleName.CALLBACKS_REFUSED, 15.0, Unit.COUNT, "15 refused callbacks"),
        (RuleName.LOCAL_ACCOUNT_USED, 1.0, Unit.COUNT, "1 sign-in"),
        (RuleName.QUEUE_AGE, 75.0, Unit.SECONDS, "75 s"),
        (RuleName.UNKNOWN_RATE, 0.19, Unit.SHARE, "19.0 %"),
    ],
)
def test_a_count_says_of_what_it_is_one(rule: str, value: float, unit: str, words: str) -> None:
    assert value_of(rule, value, unit) == words


def test_what_is_affected_says_what_it_is() -> None:
    assert affected_of("queue_age", 1_800) == "1,800 notices"
    assert affected_of("channel_failures", 1) == "1 failed send"
    assert affected_of("checkpoint_missing", 0) == "the newest rows of the trail"


def test_every_rule_that_counts_has_a_noun() -> None:
    seen = readings(
        ready=(Ready("email"),), heard=(Heard("postmark"),), turned=(Turned("mail.example", 1),),
        tallies=counts(postmark____unmapped=1),
    )  # fmt: skip
    judged = [
        each
        for rule in (*BY_STATE.values(), *BY_COUNTS.values())
        for each in rule(seen, limits_of({}, 600.0))
    ]
    counting = {each.rule for each in judged if each.unit is Unit.COUNT}
    assert len(counting) == 8
    for rule in counting:
        assert value_of(rule, 2.0, Unit.COUNT) != "2"
