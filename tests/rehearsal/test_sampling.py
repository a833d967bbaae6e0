"""Many notices with drawn latencies: shares with known answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from notifier.domain.policy import default_policy, parse_policy
from notifier.rehearsal.sampling import TYPICAL, ChannelMix, Latency, Mix, measured, sample

AT_ONCE = Latency(((0.0, 0.1),))
POLICY = default_policy()


def mix(carrier: Latency, **email: float) -> Mix:
    return Mix(
        email=ChannelMix("postmark", AT_ONCE, AT_ONCE, carrier, **email),
        sms=ChannelMix("twilio", AT_ONCE, AT_ONCE, AT_ONCE),
    )


def test_a_latency_is_a_line_between_its_points() -> None:
    latency = Latency(((0.0, 0.0), (0.5, 10.0), (1.0, 110.0)))
    assert [latency.at(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)] == [0, 5, 10, 60, 110]
    assert measured(2, 10, 40).at(0.95) == 10


@pytest.mark.parametrize("points", [((0.5, 2.0), (0.9, 1.0)), ((0.5, 1.0), (0.5, 2.0))])
def test_a_latency_whose_waits_fall_is_refused(points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match="must rise"):
        Latency(points)


def test_quick_email_needs_no_text() -> None:
    shares = sample(POLICY, mix(AT_ONCE), 50, seed=1)
    assert (shares.by_email_in_time, shares.texts_started, shares.expired) == (50, 0, 0)


def test_silent_email_always_needs_a_text_and_all_of_them_arrive() -> None:
    shares = sample(POLICY, mix(AT_ONCE, silent=1.0), 50, seed=1)
    assert (shares.texts_started, shares.by_text_in_time, shares.avoidable) == (50, 50, 0)


def test_nobody_is_texted_without_consent() -> None:
    shares = sample(POLICY, replace(mix(AT_ONCE, silent=1.0), text_consent=0.0), 50, seed=1)
    assert (shares.texts_started, shares.expired) == (0, 50)


def test_the_share_of_texts_is_the_share_of_email_slower_than_the_window() -> None:
    """A carrier that takes 0 to 600 s evenly, watched for 300 s: half of all."""
    even = Latency(((0.0, 0.0), (1.0, 600.0)))
    shares = sample(POLICY, mix(even), 400, seed=7)
    assert 0.43 < shares.share(shares.texts_started) < 0.57
    assert shares.share(shares.by_email_in_time) > 0.97


def test_two_policies_meet_the_same_notices() -> None:
    held = parse_policy({"on_unconfirmed": "hold"})
    today, draft = (sample(each, TYPICAL, 300, seed=5) for each in (POLICY, held))
    assert today.by_email_in_time == draft.by_email_in_time
    assert today.texts_started > draft.texts_started
    assert today.expired < draft.expired
    assert today == sample(POLICY, TYPICAL, 300, seed=5)
    assert today != sample(POLICY, TYPICAL, 300, seed=6)


def test_no_notices_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        sample(POLICY, TYPICAL, 0, seed=1)
