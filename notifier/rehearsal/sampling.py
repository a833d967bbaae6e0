"""What a policy would come to over many notices, with latencies drawn from distributions.

The same engine as for one scripted notice. Everything is drawn from one seed, and each notice
has draws of its own: two policies under the same seed meet the same providers.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from notifier.domain.policy import Policy
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.rehearsal.acts import Rehearsed
from notifier.rehearsal.engine import rehearse
from notifier.rehearsal.script import Call, ChannelScript, Provider, Report, Script

_LONGEST_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of waits (seconds) as points of its quantile function, shares rising.

    Between two points it is a straight line; outside them the nearest point's value.
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        shares, waits = zip(*self.points, strict=True)
        rises = all(one < other for one, other in pairwise(shares))
        grows = all(0 <= one <= other for one, other in pairwise((0.0, *waits)))
        if not rises or not grows or not 0 <= shares[0] <= shares[-1] <= 1:
            raise ValueError("shares from 0 to 1 must rise, and waits must not fall")

    def at(self, share: float) -> float:
        """The wait that this share of all does not exceed."""
        shares = [each for each, _ in self.points]
        place = bisect_right(shares, share)
        if place == 0:
            return self.points[0][1]
        if place == len(shares):
            return self.points[-1][1]
        (low, short), (high, long) = self.points[place - 1], self.points[place]
        return short + (long - short) * (share - low) / (high - low)


def measured(p50: float, p95: float, p99: float) -> Latency:
    """A distribution with these quantiles; half of the median at best, p99 doubled at worst."""
    return Latency(((0.0, p50 / 2), (0.5, p50), (0.95, p95), (0.99, p99), (1.0, 2 * p99)))


@dataclass(frozen=True, slots=True)
class ChannelMix:
    """How one channel behaves.

    `queue`: due to intent; `provider`: intent to answer; `carrier`: accepted to evidence of
    delivery. Shares of all calls: `silent` never report, `bounced` report a hard failure,
    `refused` are refused at once.
    """

    provider_name: Provider
    queue: Latency
    provider: Latency
    carrier: Latency
    silent: float = 0.0
    bounced: float = 0.0
    refused: float = 0.0


@dataclass(frozen=True, slots=True)
class Mix:
    """What notices meet; `text_consent` is the share of people who may be texted."""

    email: ChannelMix
    sms: ChannelMix
    life_s: float = 600.0
    text_consent: float = 1.0


TYPICAL: Final = Mix(
    email=ChannelMix(
        "postmark",
        queue=measured(0.1, 0.5, 2.0),
        provider=measured(0.2, 0.8, 3.0),
        carrier=measured(4.0, 60.0, 400.0),
        silent=0.02,
        bounced=0.01,
        refused=0.005,
    ),
    sms=ChannelMix(
        "twilio",
        queue=measured(0.1, 0.5, 2.0),
        provider=measured(0.3, 1.0, 4.0),
        carrier=measured(5.0, 20.0, 90.0),
        silent=0.05,
        bounced=0.02,
        refused=0.01,
    ),
    text_consent=0.8,
)
"""Made-up but plausible, for a try without measurements."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Counts out of `notices`; `share` makes a share of one.

    `avoidable`: a text was started, and the email arrived before it did or on its own.
    """

    notices: int
    by_email_in_time: int
    by_text_in_time: int
    texts_started: int
    avoidable: int
    expired: int
    failed: int

    def share(self, number: int) -> float:
        """A count's share of all notices."""
        return number / self.notices


def sample(policy: Policy, mix: Mix, number: int, seed: int) -> Shares:
    """Rehearse `number` notices under `policy`. Raises ValueError for fewer than one."""
    if number < 1:
        raise ValueError("at least one notice is needed")
    return _counted(rehearse(script, policy) for script in scripts(mix, number, seed))


def scripts(mix: Mix, number: int, seed: int) -> Iterator[Script]:
    """The notices that every policy meets under this seed."""
    for place in range(number):
        chance = random.Random(f"{seed}:{place}")  # noqa: S311 - it has to be the same again
        yield Script(
            title="drawn",
            life_s=mix.life_s,
            email=_channel(mix.email, chance, consent=None),
            sms=_channel(mix.sms, chance, consent=chance.random() < mix.text_consent),
        )


def _channel(mix: ChannelMix, chance: random.Random, *, consent: bool | None) -> ChannelScript:
    queue, provider, carrier = (
        each.at(chance.random()) for each in (mix.queue, mix.provider, mix.carrier)
    )
    fate = chance.random()
    calls = (Call(after_s=provider),)
    reports: tuple[Report, ...] = (Report(min(provider + carrier, _LONGEST_S)),)
    if fate < mix.refused:
        calls, reports = (Call("refused", after_s=provider),), ()
    elif fate < mix.refused + mix.bounced:
        reports = (Report(min(provider + carrier, _LONGEST_S), ReceiptStatus.FAILED),)
    elif fate < mix.refused + mix.bounced + mix.silent:
        reports = ()
    return ChannelScript(
        provider=mix.provider_name,
        consent=consent,
        pick_up_s=queue,
        link_s=0.0,
        calls=calls,
        reports=reports,
    )


def _counted(all_of_them: Iterator[Rehearsed]) -> Shares:
    counts = [0] * 7
    for rehearsed in all_of_them:
        for place, holds in enumerate(_facts(rehearsed)):
            counts[place] += holds
    return Shares(*counts)


def _facts(rehearsed: Rehearsed) -> Sequence[bool]:
    notice = rehearsed.notice
    email, sms = notice.deliveries[Channel.EMAIL], notice.deliveries[Channel.SMS]
    by_email = email.state is DeliveryState.DELIVERED
    by_text = sms.state is DeliveryState.DELIVERED
    texted = sms.attempts > 0
    needless = email.arrived_at is not None and (
        sms.arrived_at is None or email.arrived_at < sms.arrived_at
    )
    return (
        True,
        by_email,
        by_text,
        texted,
        notice.avoidable_noted or (texted and by_email and needless),
        notice.state is NoticeState.EXPIRED,
        notice.state is NoticeState.FAILED,
    )
