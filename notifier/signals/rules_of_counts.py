"""The rules that judge what was counted: rates against their baselines, and what was told to us.

A rate is judged by how likely its count is where nothing is wrong, never by the ratio alone, so
that a quiet night is judged as fairly as a busy noon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from notifier.signals.chance import beats, poisson_tail
from notifier.signals.judgements import (
    Judgement,
    Level,
    Reading,
    RuleName,
    by_chance,
    by_level,
)
from notifier.signals.limits import Limits
from notifier.signals.thresholds import FAILURES, OUTCOMES, Unit
from notifier.store.reads.signals import Readings, Tally

MANY_REGIONS: Final = 3
"""Trouble in so many regions at once is trouble everywhere."""


def callbacks_refused(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Refused in a row, while that provider has something to tell: noise alone is no alert."""
    for each in seen.heard:
        busy = each.awaiting > 0 or seen.tally("accepted", provider=each.provider).middle > 0
        yield by_level(
            Reading(
                RuleName.CALLBACKS_REFUSED, each.provider, each.refused if busy else 0,
                limits.at["callback_refusals_per_5_min"], Unit.COUNT, each.awaiting,
                limits.moment_s,
            )
        )  # fmt: skip


def provider_silent(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Messages were accepted a while ago, and nothing at all is heard of the provider."""
    silent_s = limits.share_s("provider_silent_share")
    for each in seen.heard:
        quiet = each.receipt_s is None or each.receipt_s >= silent_s
        yield by_level(
            Reading(
                RuleName.PROVIDER_SILENT, each.provider, each.awaiting if quiet else 0,
                limits.at["provider_silent_accepted"], Unit.COUNT, each.awaiting,
                limits.moment_s,
            )
        )  # fmt: skip


def rescues(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """More work taken back than the starts of the same minutes explain.

    Held until the queue would be old if nobody worked at all: then it is that which is told.
    """
    rescued, started = seen.tally("rescued").short, seen.tally("started").short
    least = limits.at["rescues_at_least"]
    tail = poisson_tail(rescued, limits.at["rescue_baseline"] * started)
    reading = Reading(
        RuleName.RESCUES, "", rescued, least, Unit.COUNT, rescued,
        max(limits.hold_s, limits.queue_age_s + limits.moment_s),
    )  # fmt: skip
    yield by_chance(
        reading, unlikely=started > 0 and rescued >= least and tail < limits.at["chance"]
    )


def unknown_rate(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Outcomes that nobody knows, by provider."""
    yield from _by_provider(seen, limits, RuleName.UNKNOWN_RATE, ("unknown",), hold_s=0.0)


def channel_failures(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Sends that fail, by provider; what it says of us is left to its pause."""
    yield from _by_provider(seen, limits, RuleName.CHANNEL_FAILURES, FAILURES, hold_s=limits.hold_s)


_NAMES: Final = {RuleName.UNKNOWN_RATE: "unknown", RuleName.CHANNEL_FAILURES: "failure"}


def _by_provider(
    seen: Readings, limits: Limits, rule: RuleName, signals: tuple[str, ...], *, hold_s: float
) -> Iterator[Judgement]:
    for provider in seen.providers():
        part = seen.tally(*signals, provider=provider).short
        whole = seen.tally(*OUTCOMES, provider=provider).short
        yield _share(limits, _NAMES[rule], part, whole, Reading(
            rule, provider, part / max(whole, 1), limits.at[f"{_NAMES[rule]}_share"], Unit.SHARE,
            part, hold_s,
        ))  # fmt: skip


def avoidable_fallbacks(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Texts that went although the email had arrived."""
    part, whole = seen.tally("avoidable").long, seen.tally("fallback").long
    yield _share(limits, "avoidable", part, whole, Reading(
        RuleName.AVOIDABLE_FALLBACKS, "", part / max(whole, 1), limits.at["avoidable_share"],
        Unit.SHARE, part, limits.hold_s,
    ))  # fmt: skip


def _share(limits: Limits, name: str, part: int, whole: int, reading: Reading) -> Judgement:
    """At its limit, and more than its baseline gives by chance."""
    unlikely = reading.value >= reading.threshold and beats(
        part, whole, limits.at[f"{name}_baseline"], limits.at["chance"]
    )
    return by_chance(reading, unlikely=unlikely)


def expired(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Of what was created a life ago, in a quarter of an hour and an hour; a region by itself.

    A region's own trouble is left out of the whole, so that it is told once.
    """
    found = [_expired(limits, region, _both(seen, region=region)) for region in seen.regions()]
    troubled = [each for each in found if each.level is Level.ABOVE]
    if len(troubled) >= MANY_REGIONS:
        yield _expired(limits, "", _both(seen))
        return
    yield _expired(limits, "", _both(seen, without=[each.key for each in troubled]))
    yield from found


def _both(
    seen: Readings, *, region: str | None = None, without: list[str] | None = None
) -> tuple[Tally, Tally]:
    return (
        seen.tally("expired", region=region, without=without or ()),
        seen.tally("over", region=region, without=without or ()),
    )


def _expired(limits: Limits, key: str, both: tuple[Tally, Tally]) -> Judgement:
    gone, over = both
    baseline, chance = limits.at["expired_baseline"], limits.at["chance"]
    unlikely = any(
        beats(part, whole, baseline, chance)
        for part, whole in ((gone.middle, over.middle), (gone.long, over.long))
    )
    share = gone.long / max(over.long, gone.long, 1)
    return by_chance(
        Reading(RuleName.EXPIRED, key, share, baseline, Unit.SHARE, gone.long), unlikely=unlikely
    )


def unmapped(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Words of a provider that mean nothing to us."""
    yield from _hourly(seen, RuleName.UNMAPPED, "unmapped", limits.at["unmapped_per_hour"])


def unreadable(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Callbacks that were genuine and could not be read."""
    limit = limits.at["unreadable_per_hour"]
    yield from _hourly(seen, RuleName.UNREADABLE, "callback_unreadable", limit)


def _hourly(seen: Readings, rule: RuleName, signal: str, limit: float) -> Iterator[Judgement]:
    for provider in seen.providers():
        n = seen.tally(signal, provider=provider).long
        yield by_level(Reading(rule, provider, n, limit, Unit.COUNT, n))


BY_COUNTS: Final[Mapping[RuleName, Callable[[Readings, Limits], Iterator[Judgement]]]] = {
    RuleName.CALLBACKS_REFUSED: callbacks_refused,
    RuleName.PROVIDER_SILENT: provider_silent,
    RuleName.RESCUES: rescues,
    RuleName.UNKNOWN_RATE: unknown_rate,
    RuleName.CHANNEL_FAILURES: channel_failures,
    RuleName.EXPIRED: expired,
    RuleName.AVOIDABLE_FALLBACKS: avoidable_fallbacks,
    RuleName.UNMAPPED: unmapped,
    RuleName.UNREADABLE: unreadable,
}
