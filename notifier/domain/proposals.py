"""Proposes margins, reserve and window from measured latencies, with the arithmetic in words.

Every figure is a 99th percentile taken at its upper end: the order statistic that is not below
the true percentile with 95 % confidence (the binomial bound, which asks nothing of the shape of
the distribution and takes the waits as independent). With fewer than 299 waits no order
statistic is sure enough, and nothing is proposed.

Waits whose end was never seen are not left out silently. For a margin they count as slower than
all that ended, so that they can only raise it; where they reach into the last hundredth the
percentile cannot be told, and the proposal is refused. For the observation window only waits
that ended count, because watching longer does not help the others, and the words say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from notifier.domain.call_limits import LINK_LIMIT_S
from notifier.domain.policy import Policy
from notifier.domain.policy_checks import CLAIM_POLL_S
from notifier.domain.states import Channel

SHARE: Final = 0.99
CONFIDENCE: Final = 0.95
STEP_S: Final = 5.0
"""Proposals are rounded up to a multiple of this."""


def least_samples(share: float = SHARE, confidence: float = CONFIDENCE) -> int:
    """The waits that are needed before the slowest of them bounds the percentile: 299."""
    return math.ceil(math.log(1 - confidence) / math.log(share))


@dataclass(frozen=True, slots=True)
class Waits:
    """What was measured of one step: seconds in any order, and how many never ended."""

    ended: Sequence[float] = ()
    never_ended: int = 0

    @property
    def number(self) -> int:
        """All of them."""
        return len(self.ended) + self.never_ended


@dataclass(frozen=True, slots=True)
class Measured:
    """The latencies of a window, by channel.

    `queue`: admitted or decided, to intent. `provider`: intent to answer; never ended where the
    call ran out of time. `carrier`: accepted to arrived, never ended where the request expired
    without a report. `news`: accepted to our learning of it.
    """

    queue: Mapping[Channel, Waits] = field(default_factory=dict)
    provider: Mapping[Channel, Waits] = field(default_factory=dict)
    carrier: Mapping[Channel, Waits] = field(default_factory=dict)
    news: Mapping[Channel, Waits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Summary:
    """Percentiles as they stand in the sample, for a page; None where they cannot be told.

    `p99_at_most` is the upper end of the 99th percentile (95 % confidence).
    """

    number: int
    never_ended: int
    p50: float | None
    p95: float | None
    p99: float | None
    p99_at_most: float | None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One value of the policy. `values` is the part of a policy document, None if refused.

    `arithmetic` says how it came about, or why nothing is proposed.
    """

    key: str
    today: float
    proposed: float | None
    arithmetic: str
    values: Mapping[str, Any] | None = None


def summary(waits: Waits) -> Summary:
    """The percentiles of one step, waits that never ended counted as the slowest."""
    ended, number = sorted(waits.ended), waits.number
    p50, p95, p99 = (percentile(ended, number, share) for share in (0.5, 0.95, SHARE))
    return Summary(number, waits.never_ended, p50, p95, p99, upper_end(ended, number, SHARE))


def percentile(ended: Sequence[float], number: int, share: float) -> float | None:
    """The nearest-rank percentile of `number` waits, of which `ended` (sorted) are known."""
    rank = math.ceil(round(share * number, 9))
    return ended[rank - 1] if 0 < rank <= len(ended) else None


def upper_end(ended: Sequence[float], number: int, share: float) -> float | None:
    """A wait that the true percentile does not exceed, with 95 % confidence.

    None where too few waits were measured, or too few of them ended.
    """
    beyond = _sure_beyond(number, 1 - share)
    rank = number - beyond + 1
    return ended[rank - 1] if beyond and rank <= len(ended) else None


def _sure_beyond(number: int, share: float) -> int:
    """The most waits that lie beyond the percentile for sure enough; 0 for none.

    The largest j for which at most j - 1 of `number` lie beyond it with 5 % chance or less.
    """
    chance, beyond = 0.0, 0
    while beyond < number:
        chance += _binomial(number, beyond, share)
        if chance > 1 - CONFIDENCE:
            break
        beyond += 1
    return beyond


def _binomial(number: int, hits: int, share: float) -> float:
    ways = math.lgamma(number + 1) - math.lgamma(hits + 1) - math.lgamma(number - hits + 1)
    return math.exp(ways + hits * math.log(share) + (number - hits) * math.log(1 - share))


# --- proposals


def proposals(policy: Policy, measured: Measured) -> tuple[Proposal, ...]:
    """A proposal, or a refusal with its reason, for each value that latencies decide.

    All together give a policy that passes the policy's own checks.
    """
    margins = {each: _margin(policy, measured, each) for each in Channel}
    return (
        margins[Channel.EMAIL],
        margins[Channel.SMS],
        _reserve(policy, measured, margins),
        _window(policy, measured),
    )


def proposed_document(policy: Policy, made: Sequence[Proposal]) -> dict[str, Any]:
    """The policy's document with every proposal in it."""
    document = policy.to_document()
    for proposal in made:
        for key, part in (proposal.values or {}).items():
            document[key] = {**document[key], **part}
    return document


def _margin(policy: Policy, measured: Measured, channel: Channel) -> Proposal:
    """What still has to happen after a call that began at the last moment."""
    key, today = f"safety_margin_s.{channel}", policy.safety_margin(channel)
    carrier = measured.carrier.get(channel, Waits())
    slowest = upper_end(sorted(carrier.ended), carrier.number, SHARE)
    if slowest is None:
        return Proposal(key, today, None, _refusal("carrier", carrier))
    limit = policy.call_timeout(channel)
    total = slowest + limit
    proposed = rounded_up(total)
    if proposed + limit >= policy.max_life_s:
        words = f"with {_s(proposed)} no time is left of the longest life, {_s(policy.max_life_s)}"
        return Proposal(key, today, None, f"nothing is proposed: {words}")
    words = (
        f"{_told('carrier', carrier, slowest)} + call time limit {_s(limit)} = {_s(total)}, "
        f"rounded up to {_s(proposed)}{_counted_slowest(carrier)}"
    )
    return Proposal(key, today, proposed, words, {"safety_margin_s": {str(channel): proposed}})


def _reserve(policy: Policy, measured: Measured, margins: Mapping[Channel, Proposal]) -> Proposal:
    """What a text needs from its decision on: a sweep, the queue, the call and its margin."""
    key, today = "fallback_reserve.floor_s", policy.fallback_reserve.floor_s
    email, sms = (
        each.today if each.proposed is None else each.proposed
        for each in (margins[Channel.EMAIL], margins[Channel.SMS])
    )
    queue = measured.queue.get(Channel.SMS, Waits())
    queued = upper_end(sorted(queue.ended), queue.number, SHARE)
    moved = any(each.proposed is not None for each in margins.values())
    if queued is None and not moved:
        return Proposal(key, today, None, _refusal("queue", queue))
    call, sweep = policy.call_timeout_s.sms, policy.sweep_every_s
    wait, told = _queue_part(queue, queued)
    total = sweep + wait + call + sms
    bound, why = _least_reserve(policy, email, sms)
    proposed = rounded_up(max(total, bound))
    words = (
        f"sweep {_s(sweep)} + {told} + call time limit {_s(call)} + sms margin {_s(sms)} "
        f"= {_s(total)}"
    )
    if bound > total:
        words += f"; the policy needs at least {why} = {_s(bound)}"
    cap = max(policy.fallback_reserve.cap_s, proposed)
    part = {"floor_s": proposed, "cap_s": cap}
    words += f", rounded up to {_s(proposed)}{_raised(policy.fallback_reserve.cap_s, cap)}"
    return Proposal(key, today, proposed, words, {"fallback_reserve": part})


def _queue_part(queue: Waits, queued: float | None) -> tuple[float, str]:
    if queued is not None:
        return queued, _told("text queue", queue, queued)
    limits = LINK_LIMIT_S + CLAIM_POLL_S
    few = f"only {queue.number} waits of the text queue, {least_samples()} are needed"
    return limits, f"link limit and claim poll {_s(limits)} ({few})"


def _least_reserve(policy: Policy, email: float, sms: float) -> tuple[float, str]:
    """The policy checks' own bound, and the check that it comes from."""
    call, poll, sweep = policy.call_timeout_s.sms, policy.poll_every_s, policy.sweep_every_s
    path = f"sms margin {_s(sms)} + call {_s(call)} + sweep {_s(sweep)}"
    return max(
        (sms + call + poll, f"sms margin {_s(sms)} + call {_s(call)} + poll {_s(poll)}"),
        (
            sms + call + sweep + LINK_LIMIT_S + CLAIM_POLL_S,
            f"{path} + link {_s(LINK_LIMIT_S)} + claim poll {_s(CLAIM_POLL_S)}",
        ),
        (2 * max(email, sms), f"twice the longer margin, 2 x {_s(max(email, sms))}"),
    )


def _window(policy: Policy, measured: Measured) -> Proposal:
    """How long news of an email can be worth waiting for."""
    key, today = "observation_window.cap_s", policy.observation_window.cap_s
    parts = (
        ("email queue", measured.queue.get(Channel.EMAIL, Waits())),
        ("email provider", measured.provider.get(Channel.EMAIL, Waits())),
        ("news of deliveries", measured.news.get(Channel.EMAIL, Waits())),
    )
    total, told = 0.0, []
    for name, waits in parts:
        ended = Waits(waits.ended)
        slowest = upper_end(sorted(ended.ended), ended.number, SHARE)
        if slowest is None:
            return Proposal(key, today, None, _refusal(name, ended))
        total += slowest
        told.append(_told(name, ended, slowest) + _left_out(waits))
    words = f"{' + '.join(told)} = {_s(total)}"
    least = policy.call_timeout_s.email + policy.poll_every_s
    if least > total:
        words += f"; a decision never falls before call + poll = {_s(least)}"
    proposed = rounded_up(max(total, least))
    floor = min(policy.observation_window.floor_s, proposed)
    part = {"floor_s": floor, "cap_s": proposed}
    words += f", rounded up to {_s(proposed)}"
    return Proposal(key, today, proposed, words, {"observation_window": part})


# --- words


def rounded_up(seconds: float) -> float:
    """Up to the next multiple of `STEP_S`."""
    return math.ceil(round(seconds / STEP_S, 9)) * STEP_S


def _told(name: str, waits: Waits, at_most: float) -> str:
    seen = percentile(sorted(waits.ended), waits.number, SHARE)
    return f"p99 of the {name} {_s(at_most)} ({_s(seen)} in {waits.number}, 95 % confidence)"


def _refusal(name: str, waits: Waits) -> str:
    least = least_samples()
    if waits.number < least:
        return (
            f"nothing is proposed: {waits.number} waits of the {name} were measured, and the p99 "
            f"needs at least {least} for 95 % confidence"
        )
    ended = sorted(waits.ended)
    shown = percentile(ended, len(ended), SHARE)
    among = f"; among those that were, the p99 is {_s(shown)}" if shown is not None else ""
    return (
        f"nothing is proposed: {waits.never_ended} of {waits.number} waits of the {name} were "
        f"never seen to end, so that the p99 cannot be told{among}"
    )


def _counted_slowest(waits: Waits) -> str:
    if not waits.never_ended:
        return ""
    return (
        f"; {waits.never_ended} of {waits.number} were never reported and count as slower than "
        "all others"
    )


def _left_out(waits: Waits) -> str:
    if not waits.never_ended:
        return ""
    return f" [{waits.never_ended} that never ended left out: no window is long enough for them]"


def _raised(today: float, cap: float) -> str:
    return f", with the most that is reserved raised to it from {_s(today)}" if cap > today else ""


def _s(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{round(seconds, 2):g} s"
