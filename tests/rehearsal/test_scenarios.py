"""Every scenario ends as it says, and together they show what the design promises to show."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, get_args

import pytest

from notifier.domain.policy import default_policy
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, NoticeState
from notifier.ports.asking import Capability
from notifier.providers.postmark import PostmarkAsking, PostmarkSender
from notifier.providers.resend import ResendAsking, ResendSender
from notifier.providers.smtp import SmtpSender
from notifier.providers.twilio import TwilioAsking, TwilioSender
from notifier.rehearsal import checking, library
from notifier.rehearsal.acts import Rehearsed
from notifier.rehearsal.engine import rehearse
from notifier.rehearsal.script import KINDS, Answer, Call, ChannelScript, Halt, Provider, Script

MATRIX = (
    "matrix-accepted-then-delivered",
    "matrix-email-failed-then-text",
    "matrix-no-news-before-expiry",
    "matrix-reconciled-twice",
    "matrix-late-callback",
)
NAMES = library.names()


def play(name: str) -> Rehearsed:
    script = library.load(name)
    return rehearse(script, library.policy_for(script, None))


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_ends_as_it_says(name: str) -> None:
    expect = library.load(name).expect
    assert expect is not None
    assert expect.moments or name == "failure-expired-on-arrival"
    assert checking.differences(play(name), expect) == []


def test_the_state_matrix_is_there() -> None:
    assert set(MATRIX) <= set(NAMES)


def test_every_way_into_a_text_and_out_of_its_reserve_is_shown() -> None:
    shown = {row.reason for name in NAMES for row in play(name).trail}
    wanted = {each for each in Reason if each.startswith("fallback_")} | {
        Reason.TEXT_ENDED_IN_TIME,
        Reason.PRIMARY_DELIVERED,
        Reason.PRIMARY_ACCEPTED_FINAL,
        Reason.SUPERSEDED_BY_FALLBACK,
        Reason.LIFE_TOO_SHORT_FOR_FALLBACK,
    }
    assert wanted - shown == set()


@pytest.mark.parametrize("name", NAMES)
def test_p5_no_call_begins_at_or_after_its_stop_time(name: str) -> None:
    notice = play(name).notice
    for attempt in notice.attempts:
        assert attempt.started_at < notice.deliveries[attempt.channel].stop_at


@pytest.mark.parametrize("name", NAMES)
def test_p6_no_notice_has_more_than_one_text_attempted_by_a_fallback(name: str) -> None:
    decided = [
        row
        for row in play(name).trail
        if row.channel is Channel.SMS and row.reason.startswith("fallback_email")
    ]
    assert len(decided) <= 1


def said_by(adapter: type, *names: str) -> tuple[Any, ...]:
    """What an adapter says of itself, whatever its instances are made with."""
    own = vars(adapter)
    if is_dataclass(adapter):
        own = {each.name: each.default for each in fields(adapter)}  # type: ignore[assignment]
    return tuple(own[name] for name in names)


def test_what_a_provider_can_do_is_what_its_adapter_says() -> None:
    sending = {
        name: rest
        for name, *rest in (
            said_by(each, "name", "reports_deliveries", "key_lifetime_s")
            for each in (PostmarkSender, ResendSender, SmtpSender, TwilioSender)
        )
    }
    asking = {
        name: rest
        for name, *rest in (
            said_by(each, "name", "can_find", "can_poll")
            for each in (PostmarkAsking, ResendAsking, TwilioAsking)
        )
    }
    assert sending.keys() == KINDS.keys()
    for name, kind in KINDS.items():
        assert sending[name] == [kind.reports_deliveries, kind.key_lifetime_s]
        expected = [Capability(kind.finds), kind.can_poll]
        assert asking.get(name, [Capability.NOTHING, False]) == expected


def test_the_same_script_always_gives_the_same_trail() -> None:
    for name in MATRIX:
        assert play(name).trail == play(name).trail


@pytest.mark.parametrize("provider", ["postmark", "resend", "smtp"])
@pytest.mark.parametrize("answer", get_args(Answer))
def test_any_mixture_of_short_waits_and_stops_comes_to_an_end(
    answer: Answer, provider: Provider
) -> None:
    for pick_up_s in (0.0, 5.0):
        script = Script(
            title="any",
            email=ChannelScript(provider, pick_up_s=pick_up_s, link_s=0.0, calls=(Call(answer),)),
            halts=(Halt("channel:sms", 100.0, 500.0), Halt("all", 290.0, 310.0)),
        )
        notice = rehearse(script, default_policy()).notice
        assert notice.state not in (NoticeState.EMAIL_PENDING, NoticeState.TEXT_PENDING)
        assert len(notice.trail) < 200
