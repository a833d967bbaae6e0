"""The fields of the policy page: what is typed in them, and which one is to blame."""

from __future__ import annotations

import pytest

from notifier.domain.policy import Policy, PolicyInvalid, default_policy
from notifier.web.people.policy_form import document_of, form_of, typed_of

TYPED = typed_of(default_policy().to_document())


def test_the_fields_of_a_policy_come_to_that_policy() -> None:
    assert Policy.from_document(document_of(TYPED)) == default_policy()


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("lease_s", "thirty", "valid number"),
        ("lease_s", "", "valid number"),
        ("lease_s", "nan", "valid number"),
        ("lease_s", "1_0", "valid number"),
        ("lease_s", "\u0663", "valid number"),
        ("lease_s", "3", "must be above 4"),
        ("safety_margin_s/sms", "80", "above half of the least fallback reserve"),
        ("fallback_reserve/share", "0.2.", "valid number"),
        ("retry_backoff_s", "", "at least 1 item"),
        ("retry_backoff_s", "30, soon", "valid number"),
        ("regions/sms", "GB, Atlantis", "two-letter country codes"),
        ("regions/sms", "XX", "not assigned"),
        ("absence_conclusive", "pigeon", "postmark"),
        ("account_cap_per_hour", "1.5", "valid integer"),
        ("require_consent/sms", "perhaps", "valid boolean"),
        ("on_unknown", "guess", "'send' or 'hold'"),
        ("alert/chance", "0.5", "not be above 0.01"),
        ("call_timeout_s/email", "-1", "greater than 0"),
        ("max_life_s", "1e999", "finite number"),
    ],
)
def test_the_check_of_the_file_refuses_what_is_typed_and_the_field_is_blamed(
    field: str, text: str, said: str
) -> None:
    typed = {**TYPED, field: text}
    with pytest.raises(PolicyInvalid) as caught:
        Policy.from_document(document_of(typed))
    blamed = {each.name: each.errors for each in form_of(typed, caught.value.problems)}
    assert said in " ".join(blamed[field])
    assert [name for name, errors in blamed.items() if errors] == [field]


def test_a_clash_of_several_values_blames_the_document_and_no_field() -> None:
    typed = TYPED | {"poll_every_s": "500"}
    with pytest.raises(PolicyInvalid) as caught:
        Policy.from_document(document_of(typed))
    fields = list(form_of(typed, caught.value.problems))
    assert [each.name for each in fields if each.errors] == []


def test_lists_may_be_separated_as_people_do() -> None:
    typed = TYPED | {
        "regions/sms": "gb,DE  fr",
        "retry_backoff_s": "1 2.5,3",
        "max_life_s": " 900 ",
    }
    found = Policy.from_document(document_of(typed))
    assert found.regions.sms == ("GB", "DE", "FR")
    assert list(found.retry_backoff_s) == [1, 2.5, 3]
    assert found.max_life_s == 900
