"""How long things may be kept: what keeps too little, or longer than a date can say, is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from notifier.domain.policy import PolicyInvalid, parse_policy
from notifier.domain.policy_retention import LEAST_DETAIL_DAYS, MOST_DAYS, RETENTION_DEFAULTS
from notifier.web.people import failures, policy_margins


def refused(**days: float) -> dict[str, str]:
    """What was wrong with these times, by pointer."""
    with pytest.raises(PolicyInvalid) as found:
        parse_policy({"retention": days})
    return {each.pointer: each.code for each in found.value.problems}


def test_details_are_kept_as_long_as_any_list_looks_back() -> None:
    assert refused(detail_days=6.9) == {"/retention/detail_days": "detail_too_short"}
    assert parse_policy({"retention": {"detail_days": 7}}).retention["detail_days"] == 7
    looks_back = max(*failures.RANGES.values(), policy_margins.WINDOW)
    assert looks_back <= timedelta(days=LEAST_DETAIL_DAYS)


@pytest.mark.parametrize("name", RETENTION_DEFAULTS)
def test_nothing_is_kept_longer_than_a_date_can_say(name: str) -> None:
    assert refused(**{name: MOST_DAYS + 1}) == {f"/retention/{name}": "too_long"}
    assert parse_policy({"retention": {name: MOST_DAYS}}).retention[name] == MOST_DAYS
