"""A draft beside the policy in force: what differs, what follows, and the same as a file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.policy import Policy, default_policy, parse_policy
from notifier.domain.policy_drafts import Change, changes, flat, following, nested, to_toml
from notifier.domain.states import Channel

BOTH = frozenset(Channel)

SEVERAL = {
    "safety_margin_s": {"email": 14.25, "sms": 20},
    "retry_backoff_s": [1.5, 120, 3000],
    "absence_conclusive": ["postmark", "twilio"],
    "regions": {"sms": ["DE", "GB"]},
    "parallel_reason_codes": ["fraud:high", "A.b-c_1"],
    "on_unknown": "hold",
    "require_consent": {"email": True},
    "account_cap_per_hour": 7,
    "alert": {"chance": 1e-09, "life_s": 600},
}


def policy(**different: Any) -> Policy:
    return Policy.from_document(different)


@pytest.mark.parametrize("document", [{}, SEVERAL])
def test_a_policy_written_as_a_file_is_read_back_as_the_same_policy(
    document: dict[str, Any],
) -> None:
    there = policy(**document)
    back = parse_policy(to_toml(there.to_document()).encode())
    assert back == there
    assert back.digest() == there.digest()


@given(
    st.floats(min_value=5, max_value=3600, allow_subnormal=False),
    st.lists(st.floats(min_value=0.1, max_value=1e7), min_size=1, max_size=20),
    st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True),
)
def test_any_number_and_code_survives_the_file(
    lease: float, delays: list[float], code: str
) -> None:
    there = policy(lease_s=lease, retry_backoff_s=delays, parallel_reason_codes=[code])
    assert parse_policy(to_toml(there.to_document()).encode()) == there


def test_a_flat_document_can_be_put_together_again() -> None:
    document = policy(**SEVERAL).to_document()
    assert nested(flat(document)) == document


def test_only_what_differs_is_a_change_and_a_list_is_one_value() -> None:
    new = policy(retry_backoff_s=[30, 60], safety_margin_s={"sms": 18}).to_document()
    assert changes(default_policy().to_document(), new) == [
        Change("safety_margin_s/sms", 20.0, 18.0),
        Change("retry_backoff_s", [30.0, 120.0, 300.0], [30.0, 60.0]),
    ]


def test_a_key_that_only_one_side_has_is_a_change() -> None:
    assert changes({"a": 1}, {"b": {"c": 2}}) == [Change("b/c", None, 2), Change("a", 1, None)]


def test_ten_minutes_of_life_give_the_text_five_and_the_last_starts_their_margins() -> None:
    found = following(default_policy(), 600, BOTH)
    assert (found.window_s, found.reserve_s, found.fallback_s) == (300, 120, 300)
    assert (found.email_stop_s, found.text_stop_s) == (585, 580)


def test_a_life_without_room_for_a_text_has_no_fallback_time() -> None:
    assert following(default_policy(), 120, BOTH).fallback_s is None


def test_a_listed_region_does_not_hide_the_fallback_time() -> None:
    assert following(policy(regions={"sms": ["GB"]}), 600, BOTH).fallback_s == 300
