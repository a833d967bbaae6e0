"""What the model remembers of a notice, and the rows that it expects on the trail."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

WAITING = frozenset({"standby", "queued", "claimed"})
UNSENT = frozenset({"queued", "claimed"})
MAY_BE_OUT = frozenset({"attempted", "unknown", "accepted", "delivered"})
BUSY = frozenset({"queued", "claimed", "attempted", "unknown", "accepted"})
ENDED = frozenset({"failed", "suppressed", "expired", "canceled"})

GRACE = timedelta(seconds=2)
"""How long after a lease's end its holder is still waited for."""


@dataclass(frozen=True)
class Row:
    """One row of the trail: a move, or a fact (then both states are the same)."""

    channel: str | None
    start: str | None
    end: str | None
    reason: str


@dataclass(frozen=True)
class Terms:
    """The operating values (design, sections 4 and 5), in seconds; `final_email`: a relay that
    reports nothing, whose acceptance the policy takes as the end."""

    on_unknown: str = "send"
    on_unconfirmed: str = "send"
    final_email: bool = False
    takes_bounces: bool = False
    absence_counts: bool = False
    email_margin: float = 15
    sms_margin: float = 20
    call: float = 10
    email_budget: float = 70
    poll: float = 60
    lease: float = 30
    settle: float = 60
    pause: float = 60
    key_life: float = 0
    back_off: tuple[float, ...] = (30, 120, 300)
    window: tuple[float, float, float] = (0.5, 60, 300)
    reserve: tuple[float, float, float] = (0.2, 90, 120)

    def window_of(self, life: float) -> timedelta:
        return timedelta(seconds=_share(self.window, life))

    def reserve_of(self, life: float) -> timedelta:
        return timedelta(seconds=_share(self.reserve, life))

    def budget(self, channel: str) -> timedelta:
        return timedelta(seconds=self.email_budget if channel == "email" else self.call)

    def turn(self, channel: str) -> timedelta:
        """How long one may try a provider after its pause: link, line and call."""
        return timedelta(seconds=3 + self.call) + self.budget(channel)

    def retry_after(self, failures: int) -> timedelta:
        return timedelta(seconds=self.back_off[min(failures, len(self.back_off)) - 1])


def _share(rule: tuple[float, float, float], life: float) -> float:
    share, floor, cap = rule
    return min(cap, max(floor, share * life))


@dataclass
class Attempt:
    """One external send. `open`: nothing has told yet what became of it; `why`: the reason for
    which it was last called unknown; `replay_waits`: its repeated call has not answered."""

    number: int
    reference: str
    provider: str
    started_at: datetime
    deadline: datetime
    open: bool = True
    answered: bool = False
    proven_unsent: bool = False
    ended_at: datetime | None = None
    message_id: str | None = None
    why: str = "worker_lost"
    authorised: bool = False
    replayed: bool = False
    replay_waits: bool = False


@dataclass
class Delivery:
    """A notice's job on one channel. `chosen_at`: when a decision last queued it."""

    channel: str
    state: str
    stop_at: datetime
    due_at: datetime
    provider: str
    fence: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    final: bool = False
    may_have_left: bool = False
    left: bool = False
    arrived_at: datetime | None = None
    chosen_at: datetime | None = None
    absences: int = 0
    replay_due: datetime | None = None
    link_tries: int = 0
    due_between: tuple[datetime, datetime] | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def arrived(self) -> bool:
        return self.state == "delivered" or (self.state == "accepted" and self.final)

    @property
    def open_attempt(self) -> Attempt | None:
        return next((each for each in self.attempts if each.open), None)


@dataclass
class Notice:
    """A notice with its two deliveries, and the trail rows not yet compared."""

    name: str
    account: str
    event: str
    mode: str
    terms: Terms
    created_at: datetime
    requested_at: datetime
    expires_at: datetime
    fallback_at: datetime | None
    email: Delivery
    sms: Delivery
    canceled: bool = False
    hold_noted: bool = False
    avoidable_noted: bool = False
    superseded: bool = False
    contacts: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    @property
    def both(self) -> tuple[Delivery, Delivery]:
        return self.email, self.sms

    def on(self, channel: str) -> Delivery:
        return self.email if channel == "email" else self.sms

    def move(self, delivery: Delivery, end: str, reason: str) -> None:
        self.rows.append(Row(delivery.channel, delivery.state, end, reason))
        delivery.state = end
        if end not in {"claimed", "attempted"}:
            delivery.owner = delivery.lease_until = None

    def note(self, delivery: Delivery | None, reason: str) -> None:
        state = delivery.state if delivery else None
        self.rows.append(Row(delivery.channel if delivery else None, state, state, reason))

    def state(self) -> tuple[str, str | None]:  # noqa: PLR0911 - one rule after the other
        """Section 3.2, first match wins: the state and what a complete one rests on."""
        email, sms, states = self.email, self.sms, {self.email.state, self.sms.state}
        if "delivered" in states:
            return "complete", "delivered"
        if email.arrived or sms.arrived:
            return "complete", "accepted"
        if self.canceled:
            return "canceled", None
        fallback = self.mode in {"email_then_sms", "email_only"}
        if sms.state in BUSY and (fallback or email.state not in BUSY):
            return "text_pending", None
        if email.state in BUSY or email.state == "standby":
            return "email_pending", None
        if sms.state == "standby":
            return "text_pending", None
        ends = [each for each in ("expired", "failed") if each in states]
        return (ends[0] if ends else "suppressed"), None


def support_word(notice: Notice) -> str:
    """Section 3.2: the strongest of what may have reached the person."""
    words = {
        "delivered": "delivered",
        "accepted": "accepted",
        "attempted": "unknown",
        "unknown": "unknown",
        "standby": "queued",
        "queued": "queued",
        "claimed": "queued",
        "suppressed": "not sent",
    }
    order = ("delivered", "accepted", "unknown", "queued", "canceled", "expired", "failed")
    said = {words.get(each.state, each.state) for each in notice.both}
    return next((word for word in order if word in said), "not sent")
