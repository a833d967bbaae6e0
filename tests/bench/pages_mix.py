"""Of what a million notices consist: their fates, as steps of the trail with the seconds between.

Of a thousand that are over: 400 went by email to a provider that reported the arrival, 340 to a
relay whose word is final, 80 arrived as a text after an email of unknown outcome, 60 were tried
twice, 30 failed and went as a text, 30 failed, 30 expired unconfirmed or unknown, 20 expired
unsent, 10 were canceled because the reset was used. Of a hundred that are open: 60 accepted and
not confirmed, 25 queued again after a halt that still stands, 15 unknown. Each has at least six
rows in its trail; times are stretched by a factor between a half and one and a half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.people_fates import Step, admitted, sending

LIFE_S: Final = 900.0
OPEN_LIFE_S: Final = 8 * 3600.0
"""Of those that are open: they have to be so for as long as the pages are measured."""
HALTED: Final = "template:password-reset@0"
TAKEN: Final = "provider_accepted"


@dataclass(frozen=True, slots=True)
class Fate:
    """`weight` notices of all come to `state` by these steps."""

    name: str
    weight: int
    state: str
    steps: Sequence[Step]
    basis: str | None = None
    canceled: str | None = None
    template_revision: str = "1"


def _first(sms: str, provider: str = "postmark") -> list[Step]:
    """Admitted, claimed and begun, by email."""
    steps = [*admitted(sms=sms), *sending(1)]
    begun = steps[-1]
    return [*steps[:-1], Step(**begun.__dict__ | {"provider": provider})]


def _told(after: float, to: str, reason: str, provider: str, channel: str = "email") -> Step:
    """What a provider answered, or let us know of later."""
    actor = f"provider:{provider}" if reason == "receipt" else "worker"
    outcome = {"accepted": "accepted", "failed": "refused", "unknown": "unknown"}.get(to)
    return Step(
        after, channel, to, reason, attempt=1, actor=actor, provider=provider,
        occurred=after - 1 if reason == "receipt" else None,
        detail="hard_bounce" if to == "failed" else None,
        outcome=None if reason == "receipt" else outcome,
    )  # fmt: skip


_TEXT: Final = [
    Step(121, "sms", "claimed", "claimed"),
    Step(121.3, "sms", "attempted", "attempt_started", attempt=1, provider="twilio"),
    _told(122.4, "accepted", TAKEN, "twilio", "sms"),
    _told(128, "delivered", "receipt", "twilio", "sms"),
]
_HANDED_BACK: Final = [
    Step(2, "email", "claimed", "claimed"),
    Step(3, "email", "queued", "halted"),
]

PAST: Final = (
    Fate("delivered", 400, "complete", [
        *_first("standby"),
        _told(3, "accepted", TAKEN, "postmark"),
        _told(9, "delivered", "receipt", "postmark"),
        Step(800, "sms", "suppressed", "primary_delivered", actor="expiry"),
    ], basis="delivered"),
    Fate("relayed", 340, "complete", [
        *_first("no_consent", "smtp"),
        _told(2.1, "accepted", TAKEN, "smtp"),
    ], basis="accepted"),
    Fate("texted", 80, "complete", [
        *_first("standby"),
        _told(31.3, "unknown", "timeout", "postmark"),
        Step(120, "sms", "queued", "fallback_email_unknown", actor="fallback"),
        *_TEXT,
        Step(LIFE_S, "email", "expired", "unknown_at_expiry", actor="expiry"),
    ], basis="delivered"),
    Fate("retried", 60, "complete", [
        *_first("no_consent", "smtp"),
        Step(2, "email", "queued", "not_accepted", attempt=1, provider="smtp",
             detail="rate_limited", outcome="not_accepted"),
        *(Step(**each.__dict__ | {"after": each.after + 32, "attempt": each.attempt and 2})
          for each in sending(1)),
        Step(34, "email", "accepted", TAKEN, attempt=2, provider="smtp", outcome="accepted"),
    ], basis="accepted"),
    Fate("failed, texted", 30, "complete", [
        *_first("standby"),
        _told(3, "failed", "refused", "postmark"),
        Step(3.1, "sms", "queued", "fallback_email_failed", actor="fallback"),
        *_TEXT,
    ], basis="delivered"),
    Fate("failed", 30, "failed", [
        *_first("no_consent"),
        _told(3, "failed", "refused", "postmark"),
    ]),
    Fate("unconfirmed", 20, "expired", [
        *_first("no_consent"),
        _told(3, "accepted", TAKEN, "postmark"),
        Step(LIFE_S, "email", "expired", "unconfirmed_at_expiry", actor="expiry"),
    ]),
    Fate("unknown", 10, "expired", [
        *_first("no_consent"),
        _told(31.3, "unknown", "timeout", "postmark"),
        Step(LIFE_S, "email", "expired", "unknown_at_expiry", actor="expiry"),
    ]),
    Fate("unsent", 20, "expired", [
        *admitted(sms="no_consent"),
        Step(1, "email", "claimed", "claimed"),
        Step(4, "email", "queued", "link_unavailable"),
        Step(850, "email", "expired", "too_close_to_expiry", actor="expiry"),
    ]),
    Fate("used", 10, "canceled", [
        *admitted(sms="no_consent"),
        Step(1, "email", "claimed", "claimed"),
        Step(4, "email", "queued", "link_unavailable"),
        Step(60, "email", "canceled", "reset_used"),
    ], canceled="used"),
)  # fmt: skip
OPEN: Final = (
    Fate("accepted", 60, "email_pending", [
        *_first("standby"),
        _told(3, "accepted", TAKEN, "postmark"),
    ]),
    Fate("queued", 25, "email_pending", [
        *admitted(sms="no_consent"),
        *_HANDED_BACK,
        *_HANDED_BACK,
    ], template_revision="0"),
    Fate("lost", 15, "email_pending", [
        *_first("no_consent"),
        _told(31.3, "unknown", "timeout", "postmark"),
    ]),
)  # fmt: skip
