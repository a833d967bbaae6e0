"""What makes a policy contradict itself, although each of its values is fine.

Each check answers with the arithmetic that failed, so that whoever wrote the document can
see which number to change (contract, section 4; design, 11.10).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from notifier.domain.call_limits import LINK_LIMIT_S
from notifier.domain.contradiction import Contradiction
from notifier.domain.policy_alerts import alert_contradictions
from notifier.domain.policy_limits import limit_contradictions
from notifier.domain.policy_retention import retention_contradictions
from notifier.domain.regions import REGIONS

if TYPE_CHECKING:
    from notifier.domain.policy import Policy

CLAIM_POLL_S: Final = 1.0
"""How often a claim loop looks by itself, without being woken (design, section 9)."""


def contradictions(policy: Policy) -> list[Contradiction]:
    """Every contradiction in the document; empty when it may be used."""
    return [
        *_countries(policy),
        *_ranges(policy),
        *_lease(policy),
        *_reserve(policy),
        *_margins(policy),
        *_life(policy),
        *limit_contradictions(policy),
        *alert_contradictions(policy.alert),
        *retention_contradictions(policy.retention),
    ]


def least_reserve(policy: Policy) -> float:
    """The smallest reserve (seconds) that any life gets; the share only ever adds to it."""
    return min(policy.fallback_reserve.floor_s, policy.fallback_reserve.cap_s)


def _countries(policy: Policy) -> Iterator[Contradiction]:
    listed = policy.regions.sms
    unknown = [] if listed == "any" else sorted(set(listed) - REGIONS)
    if unknown:
        sentence = f"not assigned as ISO 3166-1 country codes: {', '.join(unknown)}"
        yield "/regions/sms", "unknown_country", sentence


def _ranges(policy: Policy) -> Iterator[Contradiction]:
    for name in ("fallback_reserve", "observation_window"):
        part = getattr(policy, name)
        if part.floor_s > part.cap_s:
            yield (
                f"/{name}",
                "floor_above_cap",
                f"floor_s {part.floor_s:g} is above cap_s {part.cap_s:g}",
            )


def _lease(policy: Policy) -> Iterator[Contradiction]:
    least = LINK_LIMIT_S + 1
    if policy.lease_s <= least:
        yield (
            "/lease_s",
            "lease_too_short",
            (
                f"lease_s {policy.lease_s:g} must be above {least:g}: "
                f"the link's time limit of {LINK_LIMIT_S:g} s and one second"
            ),
        )


def _reserve(policy: Policy) -> Iterator[Contradiction]:
    reserve = least_reserve(policy)
    margin, call = policy.safety_margin_s.sms, policy.call_timeout_s.sms
    poll, sweep = policy.poll_every_s, policy.sweep_every_s
    room = margin + call + poll
    if reserve < room:
        yield (
            "",
            "reserve_without_room",
            (
                f"the least fallback reserve of {reserve:g} s leaves no room for a text: "
                f"sms margin {margin:g} + sms call {call:g} + poll {poll:g} = {room:g} s"
            ),
        )
    path = margin + call + sweep + LINK_LIMIT_S + CLAIM_POLL_S
    if reserve < path:
        yield (
            "",
            "reserve_too_short",
            (
                f"the least fallback reserve of {reserve:g} s is too short to send a text: "
                f"sms margin {margin:g} + sms call {call:g} + sweep {sweep:g} + link "
                f"{LINK_LIMIT_S:g} + claim poll {CLAIM_POLL_S:g} = {path:g} s"
            ),
        )


def _margins(policy: Policy) -> Iterator[Contradiction]:
    half = least_reserve(policy) / 2
    margins = {"email": policy.safety_margin_s.email, "sms": policy.safety_margin_s.sms}
    for channel, margin in margins.items():
        if margin > half:
            yield (
                f"/safety_margin_s/{channel}",
                "margin_above_half_reserve",
                (
                    f"a margin of {margin:g} s is above half of the least fallback reserve: "
                    f"{2 * half:g} / 2 = {half:g} s"
                ),
            )


def _life(policy: Policy) -> Iterator[Contradiction]:
    margin, call = policy.safety_margin_s.email, policy.call_timeout_s.email
    if policy.max_life_s <= margin + call:
        yield (
            "/max_life_s",
            "life_too_short",
            (
                f"max_life_s {policy.max_life_s:g} must be above email margin {margin:g} "
                f"+ email call {call:g} = {margin + call:g} s"
            ),
        )
