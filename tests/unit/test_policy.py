"""The policy document: defaults, refusals with their arithmetic, and what follows from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.policy import (
    DEFAULTS,
    Policy,
    PolicyInvalid,
    default_policy,
    parse_policy,
)
from notifier.domain.states import Channel


def refused(document: dict[str, Any] | bytes) -> dict[str, tuple[str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(document)
    return {each.pointer: (each.code, each.message) for each in caught.value.problems}


def codes(document: dict[str, Any]) -> set[str]:
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(document)
    return {each.code for each in caught.value.problems}


def test_the_built_in_values_are_a_policy_and_stand_in_one_place() -> None:
    assert default_policy().to_document() == DEFAULTS


def test_a_document_survives_its_way_through_json() -> None:
    policy = parse_policy(
        {"lease_s": 12.5, "regions": {"sms": ["GB", "IT"]}, "alert": {"queue_age_s": 3}}
    )
    again = Policy.from_document(json.loads(json.dumps(policy.to_document())))
    assert again == policy
    assert again.digest() == policy.digest()


def test_whole_seconds_and_fractions_are_the_same_number() -> None:
    assert parse_policy({"settle_s": 90}).digest() == parse_policy({"settle_s": 90.0}).digest()
    assert parse_policy({"settle_s": 90}).digest() != parse_policy({"settle_s": 90.5}).digest()


def test_a_partly_given_table_keeps_its_other_defaults() -> None:
    policy = parse_policy({"safety_margin_s": {"email": 11}})
    assert policy.safety_margin(Channel.EMAIL) == 11
    assert policy.safety_margin(Channel.SMS) == DEFAULTS["safety_margin_s"]["sms"]


def test_a_toml_file_is_read() -> None:
    policy = parse_policy(b'on_unknown = "hold"\n[alert]\nqueue_age_s = 45\n[regions]\nsms = "any"')
    assert policy.on_unknown == "hold"
    assert policy.alert["queue_age_s"] == 45


@pytest.mark.parametrize(
    ("source", "code"), [(b"lease_s = ", "not_toml"), (b"a = '\xff'", "not_utf8")]
)
def test_a_file_that_is_no_toml_is_refused_as_a_whole(source: bytes, code: str) -> None:
    assert refused(source)[""][0] == code


def test_every_fault_is_named_at_once() -> None:
    faults = refused(
        {
            "no_such_key": 1,
            "safety_margin_s": {"fax": 3},
            "lease_s": True,
            "poll_every_s": "60",
            "retry_backoff_s": [],
            "retry_jitter": 1.5,
            "on_unknown": "guess",
            "regions": {"sms": ["gb"]},
            "absence_conclusive": ["no-such-provider"],
            "alert": {"queue_age_s": "long", "Bad Key": 1},
            "retention": {"trail_days": False},
            "account_cap_per_hour": 1.5,
        }
    )
    assert set(faults) == {
        "/no_such_key",
        "/safety_margin_s/fax",
        "/lease_s",
        "/poll_every_s",
        "/retry_backoff_s",
        "/retry_jitter",
        "/on_unknown",
        "/regions/sms",
        "/absence_conclusive/0",
        "/alert/queue_age_s",
        "/alert/Bad Key",
        "/retention/trail_days",
        "/account_cap_per_hour",
    }
    assert faults["/no_such_key"][0] == "unknown_key"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, 1e300])
def test_a_number_of_seconds_is_finite_and_not_negative(number: float) -> None:
    assert "/settle_s" in refused({"settle_s": number})


@pytest.mark.parametrize("key", sorted(DEFAULTS))
def test_no_key_takes_nothing_for_an_answer(key: str) -> None:
    assert any(pointer.startswith(f"/{key}") for pointer in refused({key: None}))


def test_a_country_that_does_not_exist_is_refused() -> None:
    assert refused({"regions": {"sms": ["GB", "UK"]}})["/regions/sms"][0] == "unknown_country"


def test_a_lease_must_outlast_the_link_limit_by_more_than_a_second() -> None:
    code, message = refused({"lease_s": 4})["/lease_s"]
    assert code == "lease_too_short"
    assert "above 4" in message
    assert parse_policy({"lease_s": 4.001}).lease_s == 4.001


def test_a_reserve_must_leave_room_for_margin_call_and_poll() -> None:
    _, message = refused({"fallback_reserve": {"floor_s": 89.9}})[""]
    assert "sms margin 20 + sms call 10 + poll 60 = 90 s" in message
    assert parse_policy({"fallback_reserve": {"floor_s": 90}}).fallback_reserve_s(1) == 90


def test_a_small_cap_leaves_no_room_either() -> None:
    found = codes({"fallback_reserve": {"floor_s": 0, "cap_s": 80}})
    assert "reserve_without_room" in found


def test_a_reserve_must_outlast_the_whole_way_of_a_text() -> None:
    fast = {"poll_every_s": 0.5, "fallback_reserve": {"floor_s": 38.9}}
    margins = {"safety_margin_s": {"email": 15, "sms": 19}}
    assert codes({**fast, "safety_margin_s": {"email": 15, "sms": 20}}) >= {"reserve_too_short"}
    assert parse_policy({**fast, **margins}).poll_every_s == 0.5


def test_a_margin_above_half_of_the_reserve_is_refused() -> None:
    code, message = refused({"safety_margin_s": {"email": 45.1}})["/safety_margin_s/email"]
    assert code == "margin_above_half_reserve"
    assert "90 / 2 = 45" in message
    assert parse_policy({"safety_margin_s": {"email": 45}}).safety_margin_s.email == 45


def test_a_floor_above_its_cap_is_refused() -> None:
    faults = refused({"observation_window": {"floor_s": 301}})
    assert faults["/observation_window"][0] == "floor_above_cap"


def test_a_life_in_which_no_email_could_start_is_refused() -> None:
    assert refused({"max_life_s": 25})["/max_life_s"][0] == "life_too_short"


def test_a_policy_of_fractions_of_seconds_is_possible() -> None:
    fast = {
        "safety_margin_s": {"email": 0.1, "sms": 0.1},
        "fallback_reserve": {"share": 0.2, "floor_s": 5, "cap_s": 5},
        "observation_window": {"share": 0.1, "floor_s": 0.2, "cap_s": 1},
        "poll_every_s": 0.1,
        "call_timeout_s": {"email": 0.3, "sms": 0.3},
        "sweep_every_s": 0.1,
        "lease_s": 4.5,
    }
    assert parse_policy(fast).observation_window_s(0.0) == 0.2


@given(life=st.floats(0, 1e6))
def test_reserve_and_window_stay_between_floor_and_cap(life: float) -> None:
    policy = default_policy()
    reserve, window = policy.fallback_reserve, policy.observation_window
    assert reserve.floor_s <= policy.fallback_reserve_s(life) <= reserve.cap_s
    assert window.floor_s <= policy.observation_window_s(life) <= window.cap_s


def test_the_last_delay_repeats() -> None:
    policy = default_policy()
    assert [policy.retry_delay(n) for n in (1, 2, 3, 4, 99)] == [30, 120, 300, 300, 300]
    assert [policy.reconcile_delay(n) for n in (1, 4, 5)] == [5, 40, 40]
    with pytest.raises(ValueError, match="from one"):
        policy.retry_delay(0)


def test_acceptance_is_final_only_where_nothing_more_is_reported() -> None:
    final, open_ended = default_policy(), parse_policy({"relay_acceptance": "unconfirmed"})
    assert final.acceptance_is_final(reports_deliveries=False)
    assert not final.acceptance_is_final(reports_deliveries=True)
    assert not open_ended.acceptance_is_final(reports_deliveries=False)


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        default_policy().lease_s = 1


def test_the_alert_table_is_checked_as_a_whole() -> None:
    faults = refused(
        {
            "alert": {
                "queue_age_share": 0.19,
                "no_such_limit": 1,
                "chance": 0.5,
                "failure_baseline": 0.3,
                "avoidable_share": 1.5,
                "rescues_at_least": 0,
            }
        }
    )
    assert {pointer: code for pointer, (code, _) in faults.items()} == {
        "/alert/queue_age_share": "alert_too_late",
        "/alert/no_such_limit": "unknown_key",
        "/alert/chance": "wrong_value",
        "/alert/failure_baseline": "baseline_above_limit",
        "/alert/avoidable_share": "wrong_value",
        "/alert/rescues_at_least": "wrong_value",
    }
    assert "0.19 + hold_share 0.05" in faults["/alert/queue_age_share"][1]
