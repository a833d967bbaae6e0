"""A scenario that cannot be used says what is wrong with it, and where."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from notifier.domain.policy import PolicyInvalid, parse_policy
from notifier.rehearsal import checking, library
from notifier.rehearsal.engine import rehearse
from notifier.rehearsal.library import ScenarioInvalid
from notifier.rehearsal.script import Script

LEAST = b'title = "one"\n'


def fault(source: bytes) -> str:
    with pytest.raises(ScenarioInvalid) as caught:
        library.read(source, "mine.toml")
    return str(caught.value)


def test_the_least_scenario_has_both_channels_and_a_life_of_ten_minutes() -> None:
    script = library.read(LEAST, "mine.toml")
    assert (script.life_s, script.email.provider, script.sms.provider) == (
        600,
        "postmark",
        "twilio",
    )
    assert script.sms.consent is True


def test_a_channel_that_is_partly_given_keeps_its_usual_provider() -> None:
    script = library.read(LEAST + b"[sms]\nconsent = false\n", "mine.toml")
    assert (script.sms.provider, script.sms.consent) == ("twilio", False)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"life_s = 60", "/title: field required"),
        (LEAST + b"life_s = -1", "/life_s: input should be greater than 0"),
        (LEAST + b"colour = 1", "/colour: unexpected keyword argument"),
        (LEAST + b'[[email.calls]]\nanswer = "perhaps"', "/email/calls/0/answer: input should be"),
        (LEAST + b'[email]\nprovider = "twilio"', "/email/provider: twilio does not send email"),
        (LEAST + b'[[halts]]\nscope = "moon"\nfrom_s = 1', "/halts/0/scope: string should match"),
        (b"title = ", "not valid TOML"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_fault_is_named_with_its_place(source: bytes, words: str) -> None:
    assert words in fault(source)


def test_an_unknown_name_is_answered_with_those_near_to_it() -> None:
    with pytest.raises(ScenarioInvalid, match=r"near to it: .*failure-replayed"):
        library.load("failure-replay")


def test_a_name_near_to_none_is_answered_with_the_list() -> None:
    with pytest.raises(ScenarioInvalid, match="--list names them all"):
        library.load("zzz")


def test_a_file_of_ones_own_is_played_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(LEAST)
    assert library.load(str(path)).title == "one"
    with pytest.raises(ScenarioInvalid, match="No such file"):
        library.load(str(tmp_path / "other.toml"))


def test_a_policy_file_wins_over_the_values_that_a_scenario_was_written_for() -> None:
    script = library.read(
        LEAST + b'[policy]\non_unknown = "hold"\nsafety_margin_s = { sms = 18.0 }', "mine.toml"
    )
    policy = library.policy_for(script, b"[safety_margin_s]\nemail = 11.0")
    assert (policy.on_unknown, policy.safety_margin_s.sms) == ("hold", 18)
    assert policy.safety_margin_s.email == 11
    assert library.policy_for(script, b'on_unknown = "send"').on_unknown == "send"


def test_a_file_that_only_contradicts_the_scenario_is_not_called_invalid() -> None:
    script = library.load("fallback-email-expired")
    source = b"poll_every_s = 20.0\n[fallback_reserve]\nfloor_s = 70.0"
    assert parse_policy(source).poll_every_s == 20
    with pytest.raises(ScenarioInvalid, match=r"(?s)this scenario is written for.*margin of 40 s"):
        library.policy_for(script, source)


def test_a_policy_file_is_refused_in_the_words_of_the_product() -> None:
    source = b"lease_s = 1\ncolour = 2"
    script = library.read(LEAST, "mine.toml")
    with pytest.raises(PolicyInvalid) as here:
        library.policy_for(script, source)
    with pytest.raises(PolicyInvalid) as there:
        parse_policy(source)
    assert str(here.value) == str(there.value)


def test_the_scenario_of_the_guide_holds_every_key_and_goes_as_it_says() -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/rehearse.md").read_text()
    source = guide.split("```toml\n")[1].split("```")[0]
    script = library.read(source.encode(), "the guide")
    assert set(tomllib.loads(source)) == {each.name for each in fields(Script)}
    assert script.expect is not None
    went = rehearse(script, library.policy_for(script, None))
    assert checking.differences(went, script.expect) == []
