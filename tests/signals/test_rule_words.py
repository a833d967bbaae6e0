"""What an alert says of itself: a number has its noun."""

from __future__ import annotations

import pytest

from notifier.signals.judgements import RuleName
from notifier.signals.limits import limits_of
from notifier.signals.rule_words import affected_of, amount, value_of
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
        (RuleName.CALLBACKS_REFUSED, 15.0, Unit.COUNT, "15 refused callbacks within 5 min"),
        (RuleName.LOCAL_ACCOUNT_USED, 1.0, Unit.COUNT, "1 sign-in"),
        (RuleName.QUEUE_AGE, 75.0, Unit.SECONDS, "75 s of waiting"),
        (RuleName.NO_PROGRESS, 29.998, Unit.SECONDS, "30 s without progress"),
        (RuleName.UNKNOWN_RATE, 0.19, Unit.SHARE, "19.0 % of the sends within 5 min unknown"),
        (RuleName.CHANNEL_FAILURES, 0.102, Unit.SHARE, "10.2 % of the sends within 5 min failed"),
        (RuleName.UNMAPPED, 1.0, Unit.COUNT, "1 unknown word within 1 h"),
    ],
)
def test_a_value_says_of_what_it_is_one_and_over_which_period(
    rule: str, value: float, unit: str, words: str
) -> None:
    assert value_of(rule, value, unit) == words


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("auth_error", "7 s of pause (auth_error)"),
        ("rate_limited", "7 s of waiting (rate_limited)"),
        (None, "7 s while it was paused"),
    ],
)
def test_a_pause_gives_its_reason(detail: str | None, words: str) -> None:
    assert value_of(RuleName.PROVIDER_PAUSED, 7.0, Unit.SECONDS, detail) == words


def test_what_is_affected_says_what_it_is() -> None:
    assert affected_of("queue_age", 1_800) == "1,800 notices"
    assert affected_of("channel_failures", 1) == "1 failed send"
    assert affected_of("checkpoint_missing", 0) == "the newest rows of the trail"


def test_nothing_affected_yet_does_not_read_as_a_false_alarm() -> None:
    assert affected_of("callbacks_refused", 0) == (
        "no message without news yet; each refused callback may be a report missed"
    )
    assert affected_of("callbacks_refused", 2) == "2 messages without news"
    assert affected_of("provider_paused", 0) == "no notice yet"


def test_every_rule_says_what_its_value_is_one_of() -> None:
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
    for each in judged:
        assert value_of(each.rule, 2.0, each.unit) != amount(2.0, each.unit)
