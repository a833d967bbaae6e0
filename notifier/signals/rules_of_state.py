"""The rules that judge what stands at this moment: open work, leases, pauses, sweeps.

They need no counts, so they hold also where nobody counts any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from notifier.domain.reasons import Detail
from notifier.signals.causes import SCHEDULER
from notifier.signals.judgements import (
    Judgement,
    Level,
    Reading,
    RuleName,
    by_level,
    channel_of,
)
from notifier.signals.limits import Limits
from notifier.signals.thresholds import Unit
from notifier.store.reads.signals import Readings, Ready

RUN_ALLOWANCE_S: Final = 5.0
TICKS_MISSED: Final = 3
CHECKPOINT_HOLD_S: Final = 300.0
RESCUE: Final = "rescue"
"""The sweep that takes lapsed leases back."""


def queue_age(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Ready work older than its limit, or older than what is left to its stop."""
    for each in seen.ready:
        limit = limits.queue_age_s
        if each.over_budget:
            limit = min(limit, each.least_wait_s)
        yield by_level(
            Reading(
                RuleName.QUEUE_AGE, each.channel, each.oldest_s, limit, Unit.SECONDS,
                each.waiting, limits.moment_s,
            )
        )  # fmt: skip


def expiry_ahead(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Work whose stop comes before its turn."""
    for each in seen.ready:
        yield by_level(
            Reading(
                RuleName.EXPIRY_AHEAD, each.channel, each.doomed, 1, Unit.COUNT,
                each.doomed, limits.hold_s,
            )
        )  # fmt: skip


def no_progress(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Work that is claimed again and again and never begun, or whose lapsed lease stays."""
    stuck = by_level(
        Reading(
            RuleName.NO_PROGRESS, "", seen.stuck.oldest_s, limits.queue_age_s, Unit.SECONDS,
            seen.stuck.stuck, limits.moment_s,
        )
    )  # fmt: skip
    lapsed = by_level(
        Reading(
            RuleName.NO_PROGRESS, "", _left_by_rescue_s(seen),
            limits.share_s("lapsed_lease_share"), Unit.SECONDS, seen.leases.lapsed,
            limits.moment_s,
        )
    )  # fmt: skip
    yield max(stuck, lapsed, key=lambda each: each.value / each.threshold)


def _left_by_rescue_s(seen: Readings) -> float:
    """For how long the oldest lapsed lease was left alone, up to the rescue's last good end.

    What lapses afterwards is owed to a sweep that stands still, and that is told by itself.
    """
    ages = (each.age_s for each in seen.sweeps if each.name == RESCUE)
    return max(0.0, seen.leases.oldest_s - (next(ages, None) or 0.0))


def provider_paused(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """A pause for our credentials, sender or account at once; one that paces us once work is old.

    Providers pace everybody in bursts: nobody has to get up for it while the work is in time.
    """
    ready = {each.channel: each for each in seen.ready}
    for each in seen.pauses:
        behind = ready.get(channel_of(each.provider) or "", Ready(""))
        since_s = (seen.at - each.since).total_seconds()
        reading = Reading(
            RuleName.PROVIDER_PAUSED, each.provider, since_s, limits.moment_s, Unit.SECONDS,
            behind.waiting, limits.moment_s,
        )  # fmt: skip
        if each.detail != Detail.RATE_LIMITED:
            yield reading.at(Level.ABOVE)
        else:
            limit = limits.queue_age_s
            yield by_level(replace(reading, value=behind.oldest_s, threshold=limit))


def sweep_stalled(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """One silent sweep is named; where all frequent ones are silent it is the scheduler."""
    silent = {each.name: each.age_s for each in seen.sweeps if each.age_s is not None}
    limit = {name: _sweep_limit_s(name, limits) for name in silent}
    frequent = [name for name in silent if limit[name] <= limits.scheduler_silent_s]
    late = [name for name in frequent if silent[name] >= limit[name]]
    keys: Mapping[str, list[str]] = {name: [name] for name in silent}
    if late and len(late) == len(frequent):
        keys = {SCHEDULER: frequent}
    for key, names in keys.items():
        yield by_level(
            Reading(
                RuleName.SWEEP_STALLED, key, min(silent[name] for name in names),
                max(limit[name] for name in names), Unit.SECONDS, len(names),
                2 * limits.moment_s,
            )
        )  # fmt: skip


def _sweep_limit_s(name: str, limits: Limits) -> float:
    own = TICKS_MISSED * limits.period_of(name) + RUN_ALLOWANCE_S
    return max(own, limits.scheduler_silent_s)


def checkpoint_missing(seen: Readings, limits: Limits) -> Iterator[Judgement]:
    """Rows of the trail that stand under no checkpoint, where there is a key for one."""
    if not seen.seals:
        return
    limit = limits.at["checkpoint_age_s"]
    age_s = seen.checkpoint.age_s if seen.checkpoint else limit
    # Where none was ever made, the hold is the time that the first one has.
    hold_s = CHECKPOINT_HOLD_S if seen.checkpoint else limit
    yield by_level(
        Reading(
            RuleName.CHECKPOINT_MISSING, "", age_s if seen.unsealed else 0.0, limit,
            Unit.SECONDS, 0, hold_s,
        )
    )  # fmt: skip


def local_account_used(seen: Readings, _: Limits) -> Iterator[Judgement]:
    """A sign-in past single sign-on."""
    used = seen.local_sign_ins
    yield by_level(Reading(RuleName.LOCAL_ACCOUNT_USED, "", used, 1, Unit.COUNT, used))


def sender_domain_fails(seen: Readings, _: Limits) -> Iterator[Judgement]:
    """Records that receivers could use and cannot now; a look-up that failed says neither."""
    for each in seen.turned:
        yield by_level(
            Reading(
                RuleName.SENDER_DOMAIN_FAILS, each.domain, each.records, 1, Unit.COUNT, each.records
            )
        )


BY_STATE: Final[Mapping[RuleName, Callable[[Readings, Limits], Iterator[Judgement]]]] = {
    RuleName.SWEEP_STALLED: sweep_stalled,
    RuleName.PROVIDER_PAUSED: provider_paused,
    RuleName.QUEUE_AGE: queue_age,
    RuleName.EXPIRY_AHEAD: expiry_ahead,
    RuleName.NO_PROGRESS: no_progress,
    RuleName.CHECKPOINT_MISSING: checkpoint_missing,
    RuleName.LOCAL_ACCOUNT_USED: local_account_used,
    RuleName.SENDER_DOMAIN_FAILS: sender_domain_fails,
}
