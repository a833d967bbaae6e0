"""Numbers that are of the right kind, and so small or so large that something breaks by them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from notifier.domain.policy import DEFAULTS, Policy, PolicyInvalid, default_policy, parse_policy
from notifier.domain.policy_drafts import flat, following, nested
from notifier.domain.policy_limits import LIMITS, MAY_BE_NOUGHT, within_limits
from notifier.domain.states import Channel
from notifier.rehearsal.sampling import TYPICAL, sample
from notifier.signals.limits import limits_of

TINY, HUGE = 1e-30, 1e9
HARMLESS_WHEN_TINY = {
    "safety_margin_s/email", "safety_margin_s/sms", "settle_s", "retry_jitter",
    "fallback_reserve/share", "fallback_reserve/floor_s", "fallback_reserve/cap_s",
    "observation_window/share", "observation_window/floor_s", "observation_window/cap_s",
    "max_life_s", "account_cap_per_hour", "alert/hold_share",
}  # fmt: skip
"""Where nought has a meaning, or where the checks of the whole document refuse it."""
NUMBERS = {
    name: value
    for name, value in flat(DEFAULTS).items()
    if not isinstance(value, bool | str) and value != []
}


def with_value(name: str, value: Any) -> dict[str, Any]:
    """A document in which one value is another one."""
    usual = flat(DEFAULTS)[name]
    return nested({name: [value] if isinstance(usual, list) else value})


def faults(name: str, value: Any) -> dict[str, str]:
    """What is wrong with the document, by pointer."""
    try:
        parse_policy(with_value(name, value))
    except PolicyInvalid as error:
        return {each.pointer: each.message for each in error.problems}
    return {}


def of(found: dict[str, str], name: str) -> str:
    """What is said of this value."""
    return " ".join(said for where, said in found.items() if where.startswith(f"/{name}"))


@pytest.mark.parametrize("name", sorted(NUMBERS.keys() - HARMLESS_WHEN_TINY))
def test_a_number_close_to_nought_is_refused_with_a_word(name: str) -> None:
    if name.rpartition("/")[2] in COUNTS:
        assert not faults(name, TINY), "one of a count is more than any part of one"
    else:
        assert of(faults(name, TINY), name)


COUNTS = {
    each.rpartition("/")[2] for each in NUMBERS
    if each.startswith("alert/") and each not in LIMITS
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_a_number_without_a_sensible_end_is_refused_with_a_word(name: str) -> None:
    if name.rpartition("/")[2] in COUNTS:
        assert not faults(name, HUGE), "an alert that nobody wants is switched off so"
    else:
        assert of(faults(name, HUGE), name)


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_each_limit_is_told_by_its_number_and_may_be_reached(name: str) -> None:
    least, most = LIMITS[name]
    assert f"at least {least:g}" in of(faults(name, least * 0.99), name)
    assert "at least" not in of(faults(name, least), name)
    assert "at most" not in of(faults(name, most), name)
    assert of(faults(name, most * 1.01), name)
    if name in MAY_BE_NOUGHT:
        assert of(faults(name, 0), name) == ""


def test_a_list_names_the_number_that_is_wrong() -> None:
    found = {"retry_backoff_s": [30, TINY], "reconcile_after_s": [TINY, 5]}
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(found)
    assert [each.pointer for each in caught.value.problems] == [
        "/retry_backoff_s/1", "/reconcile_after_s/0",
    ]  # fmt: skip


@pytest.mark.parametrize("value", [TINY, HUGE, 5e-324, 0.0])
@pytest.mark.parametrize("name", sorted(LIMITS))
def test_a_kept_revision_from_before_a_limit_is_read_and_held_to_it(
    name: str, value: float
) -> None:
    policy = Policy.from_stored(with_value(name, value))
    found = flat(policy.to_document())[name]
    least, most = LIMITS[name]
    for each in found if isinstance(found, list) else [found]:
        assert least <= each <= most or (each == 0 == value and name in MAY_BE_NOUGHT)
    assert sample(policy, replace(TYPICAL, life_s=3600.0), 3, 1).notices == 3
    assert following(policy, 3600.0, tuple(Channel)).life_s == 3600.0
    limits = limits_of(policy.alert, policy.alert["life_s"] or 600.0)
    assert limits.share_s("lapsed_lease_share") > 0


def test_what_is_within_its_limits_is_read_as_it_was_kept() -> None:
    document = default_policy().to_document()
    assert within_limits(document) == document
    assert Policy.from_stored(document) == default_policy()
    odd = {"lease_s": "long", "alert": 3, "retention": {"trail_days": None}, "more": {"a": [1]}}
    assert within_limits(odd) == odd


def test_a_kept_revision_is_not_judged_again_but_must_be_one() -> None:
    assert Policy.from_stored({"lease_s": 4}).lease_s == 4
    with pytest.raises(PolicyInvalid):
        Policy.from_stored({"lease_s": "long"})


def test_no_period_of_a_policy_stops_the_clock_of_a_rehearsal() -> None:
    policy = Policy.model_validate({**DEFAULTS, "sweep_every_s": TINY})
    assert sample(policy, TYPICAL, 3, 1).notices == 3
