"""What would follow from a draft: times for several lives, and the same sample under both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from notifier.domain.policy import Policy
from notifier.domain.policy_drafts import Following, following
from notifier.domain.proposals import Measured, Waits, least_samples, percentile
from notifier.domain.states import Channel
from notifier.rehearsal.sampling import TYPICAL, ChannelMix, Latency, Mix, Shares, sample

if TYPE_CHECKING:
    from notifier.store.reads.latencies import Latencies

LIVES_S: Final = (300.0, 600.0, 1800.0, 3600.0)
SAMPLE: Final = 100
"""Notices a policy: what two of them take is the server time of the page, half a second."""
SEED: Final = 1
ROWS: Final[Mapping[str, str]] = {
    "window_s": "Email watched",
    "reserve_s": "Kept for text",
    "fallback_s": "Text decided",
    "email_stop_s": "Last email",
    "text_stop_s": "Last text",
}


@dataclass(frozen=True, slots=True)
class Life:
    """What follows for a token of `life_s`, by name: as it is, as it would be."""

    life_s: float
    is_learnt: bool
    rows: tuple[tuple[str, float | None, float | None], ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """The same notices under both policies. `measured`: the channels whose waits are our own."""

    today: Shares
    draft: Shares
    mix: Mix
    measured: tuple[Channel, ...]


def followings(old: Policy, new: Policy, learnt_s: float | None) -> tuple[Life, ...]:
    """What follows for lives that are common, and for the one that the events had."""
    lives = {*LIVES_S, *([round(learnt_s)] if learnt_s else [])}
    return tuple(_life(old, new, life_s, learnt_s) for life_s in sorted(lives))


def tried(old: Policy, new: Policy, latencies: Latencies, learnt_s: float | None) -> Tried:
    """The same seeded notices under both, on our own waits as far as they were measured."""
    mix, measured = mix_of(latencies.measured, learnt_s)
    return Tried(_sampled(old, mix), _sampled(new, mix), mix, measured)


def mix_of(measured: Measured, learnt_s: float | None) -> tuple[Mix, tuple[Channel, ...]]:
    """What notices of ours meet; a channel with too few waits is as is typical."""
    mix = TYPICAL if learnt_s is None else replace(TYPICAL, life_s=round(learnt_s))
    known = {
        Channel.EMAIL: _channel(mix.email, measured, Channel.EMAIL),
        Channel.SMS: _channel(mix.sms, measured, Channel.SMS),
    }
    found = tuple(channel for channel, each in known.items() if each)
    return replace(
        mix, email=known[Channel.EMAIL] or mix.email, sms=known[Channel.SMS] or mix.sms
    ), found


def _channel(typical: ChannelMix, measured: Measured, channel: Channel) -> ChannelMix | None:
    queue, provider, carrier = (
        _latency(each.get(channel))
        for each in (measured.queue, measured.provider, measured.carrier)
    )
    if queue is None or provider is None or carrier is None:
        return None
    ways = measured.carrier[channel]
    return replace(
        typical, queue=queue, provider=provider, carrier=carrier,
        silent=round(ways.never_ended / ways.number, 3),
    )  # fmt: skip


def _latency(waits: Waits | None) -> Latency | None:
    """The waits that ended, as a distribution; None where they are too few for its tail."""
    ended = sorted(waits.ended) if waits else []
    if len(ended) < least_samples():
        return None
    points = [(share, percentile(ended, len(ended), share)) for share in (0.5, 0.95, 0.99)]
    known = tuple((share, wait) for share, wait in points if wait is not None)
    return Latency(((0.0, ended[0]), *known, (1.0, ended[-1])))


def _life(old: Policy, new: Policy, life_s: float, learnt_s: float | None) -> Life:
    before, after = (following(each, life_s, tuple(Channel)) for each in (old, new))
    rows = tuple((words, _at(before, name), _at(after, name)) for name, words in ROWS.items())
    return Life(life_s, bool(learnt_s) and round(learnt_s or 0) == life_s, rows)


def _at(found: Following, name: str) -> float | None:
    value: float | None = getattr(found, name)
    return value


def _sampled(policy: Policy, mix: Mix) -> Shares:
    return _sampled_as(policy.model_dump_json(), mix)


@lru_cache(maxsize=8)
def _sampled_as(policy: str, mix: Mix) -> Shares:
    """Kept, because the reason that is missing brings the same two policies again."""
    return sample(Policy.model_validate_json(policy), mix, SAMPLE, SEED)
