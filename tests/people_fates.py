"""What may become of a notice, as scripts that `people_seed` writes into the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True)
class Step:
    """One row of the trail: seconds after the request, where to, why, and what else to set."""

    after: float
    channel: str | None
    to: str | None
    reason: str
    occurred: float | None = None
    attempt: int | None = None
    actor: str = "worker"
    provider: str | None = None
    provider_ref: str | None = None
    detail: str | None = None
    outcome: str | None = None
    evidence: dict[str, Any] | None = None
    tells: int | None = None
    """Which of the script's receipts this step records."""


@dataclass(frozen=True)
class Script:
    """A notice to write. `age` and `life` in seconds; `state` is what it has come to."""

    name: str
    state: str
    steps: Sequence[Step]
    age: float = 120
    life: float = 900
    basis: str | None = None
    email: str | None = "jana.moe@mail.example"
    sms: str | None = None
    mode: str = "email_then_sms"
    ticket: str | None = None
    account: str | None = None
    canceled: str | None = None
    receipts: Sequence[tuple[float, float, str]] = field(default_factory=tuple)
    """(occurred, received, status)"""


def admitted(channel: str = "email", sms: str | None = None) -> list[Step]:
    """How every notice begins."""
    steps = [
        Step(0.4, None, None, "event_admitted", actor="auth-service"),
        Step(0.4, channel, "queued", "primary_selected", actor="admission"),
    ]
    if sms == "standby":
        steps.append(Step(0.4, "sms", "standby", "fallback_reserved", actor="admission"))
    elif sms:
        steps.append(Step(0.4, "sms", "suppressed", sms, actor="admission"))
    return steps


def sending(at: float, channel: str = "email", attempt: int = 1) -> list[Step]:
    """A claim and a start."""
    provider = "smtp" if channel == "email" else "twilio"
    return [
        Step(at, channel, "claimed", "claimed"),
        Step(at + 0.3, channel, "attempted", "attempt_started", attempt=attempt, provider=provider),
    ]


COMPLETE: Final = [
    *admitted(sms="no_consent"),
    *sending(1),
    Step(2.1, "email", "accepted", "provider_accepted", attempt=1, provider="smtp",
         provider_ref="250 2.0.0 OK 1f9c", outcome="accepted"),
]  # fmt: skip
QUEUED: Final = admitted(sms="no_consent")
ON_ITS_WAY: Final = [*admitted(sms="standby"), *sending(1)]
ACCEPTED: Final = [
    *admitted(sms="standby"),
    *sending(1),
    Step(3, "email", "accepted", "provider_accepted", attempt=1, provider="postmark",
         provider_ref="b7bc2f4a-e38e-4336-af7d-e6c392c2f817", outcome="accepted"),
]  # fmt: skip
UNKNOWN: Final = [
    *admitted(sms="no_consent"),
    *sending(1),
    Step(31.3, "email", "unknown", "timeout", attempt=1, provider="smtp", outcome="unknown"),
]
TEXTED: Final = [
    *admitted(sms="standby"),
    *sending(1),
    Step(31.3, "email", "unknown", "connection_lost", attempt=1, provider="smtp",
         outcome="unknown"),
    Step(120, "sms", "queued", "fallback_email_unknown", actor="fallback"),
    *sending(121, "sms"),
    Step(122.4, "sms", "accepted", "provider_accepted", attempt=1, provider="twilio",
         provider_ref="SM0123456789abcdef0123456789abcdef", outcome="accepted"),
    Step(128, "sms", "delivered", "receipt", occurred=126.2, attempt=1, actor="provider:twilio",
         provider="twilio", provider_ref="SM0123456789abcdef0123456789abcdef"),
]  # fmt: skip
EXPIRED_UNSENT: Final = [
    *admitted(sms="no_consent"),
    Step(1, "email", "claimed", "claimed"),
    Step(4, "email", "queued", "link_unavailable"),
    Step(5, "email", "claimed", "claimed"),
    Step(8, "email", "queued", "link_unavailable"),
    Step(240, "email", "expired", "too_close_to_expiry", actor="expiry"),
]
EXPIRED_UNKNOWN: Final = [
    *admitted(sms="no_consent"),
    *sending(1),
    Step(31.3, "email", "unknown", "timeout", attempt=1, provider="postmark", outcome="unknown"),
    Step(300, "email", "expired", "unknown_at_expiry", actor="expiry"),
]
FAILED: Final = [
    *admitted(sms="no_destination"),
    *sending(1),
    Step(1.9, "email", "queued", "not_accepted", attempt=1, provider="smtp",
         detail="rate_limited", outcome="not_accepted"),
    *sending(33, attempt=2),
    Step(34, "email", "failed", "refused", attempt=2, provider="smtp",
         detail="invalid_destination", outcome="refused"),
]  # fmt: skip
SUPPRESSED: Final = [
    Step(0.4, None, None, "event_admitted", actor="auth-service"),
    Step(0.4, "email", "suppressed", "invalid_destination", actor="admission"),
    Step(0.4, "sms", "suppressed", "no_consent", actor="admission"),
]
CANCELED: Final = [
    *admitted(sms="standby"),
    Step(20, None, None, "cancel_recorded", actor="auth-service"),
    Step(20, "email", "canceled", "reset_used", actor="auth-service"),
    Step(20, "sms", "canceled", "reset_used", actor="auth-service"),
]

FATES: Final = [
    Script("complete", "complete", COMPLETE, age=380, basis="accepted", ticket="T-1001",
           account="acct-jana"),
    Script("delivered", "complete", TEXTED, age=300, basis="delivered", sms="+447700900143",
           ticket="T-1002", account="acct-jana"),
    Script("email_pending", "email_pending", QUEUED, age=40, ticket="T-1003"),
    Script("on_its_way", "email_pending", ON_ITS_WAY, age=3, sms="+447700900144"),
    Script("accepted", "email_pending", ACCEPTED, age=200, sms="+447700900145"),
    Script("unknown", "email_pending", UNKNOWN, age=431, ticket="T-1004"),
    Script("expired_unsent", "expired", EXPIRED_UNSENT, age=420, life=300, ticket="T-1005"),
    Script("expired_unknown", "expired", EXPIRED_UNKNOWN, age=900, life=300, ticket="T-1006"),
    Script("expired_late_news", "expired",
           [*EXPIRED_UNKNOWN, Step(700, "email", None, "late_receipt", occurred=33, attempt=1,
            actor="provider:postmark", provider="postmark", provider_ref="b7bc2f4a", tells=0)],
           age=1200, life=300, receipts=[(33, 700, "delivered")]),
    Script("expired_dead_link", "expired",
           [*EXPIRED_UNKNOWN, Step(431, "email", None, "late_receipt", occurred=430, attempt=1,
            actor="provider:postmark", provider="postmark", provider_ref="b7bc2f4b", tells=0)],
           age=1300, life=300, receipts=[(430, 431, "delivered")]),
    Script("failed", "failed", FAILED, age=200, ticket="T-1007"),
    Script("suppressed", "suppressed", SUPPRESSED, age=100, email=None),
    Script("canceled", "canceled", CANCELED, age=90, sms="+447700900146", canceled="used"),
]  # fmt: skip
"""One notice of every fate, by name."""
