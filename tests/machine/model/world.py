"""All notices of one database, with the halts, pauses and parked receipts over them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests.machine.model import rules
from tests.machine.model.facts import ENDED, Delivery, Notice, Terms

CAN_BE_STOPPED = ("standby", "queued", "claimed")
REASON_OF = {
    "used": "reset_used",
    "superseded": "reset_superseded",
    "revoked": "reset_revoked",
    "operator": "operator_stop",
}


@dataclass(frozen=True)
class Event:
    """An event's part in the decision. Destinations: `given`, `absent`, `none` or `invalid`."""

    event: str
    account: str
    requested_at: datetime
    expires_at: datetime
    mode: str = "email_then_sms"
    email: str = "absent"
    sms: str = "absent"
    email_consent: bool | None = None
    sms_consent: bool | None = True
    region: str | None = None
    supersedes: bool = False


@dataclass(eq=False)
class Told:
    """A receipt that is stored and not applied yet. `by_id`: the provider's id in it;
    `look_at`: when a sweep looks at it next, put off while nobody knows its attempt;
    `number`: the how manieth it was."""

    provider: str
    status: str
    reference: str | None
    by_id: str | None
    occurred_at: datetime | None
    received_at: datetime
    asked: bool = False
    look_at: datetime | None = None
    number: int = 0


@dataclass
class World:
    """What is true of one database."""

    terms: Terms
    providers: dict[str, str]
    reports: dict[str, bool]
    regions: tuple[str, ...] | None = None
    cap: int = 0
    notices: dict[str, Notice] = field(default_factory=dict)
    halts: set[str] = field(default_factory=set)
    pauses: dict[str, datetime] = field(default_factory=dict)
    parked: list[Told] = field(default_factory=list)
    superseding: list[Event] = field(default_factory=list)
    admitted: list[tuple[str, datetime]] = field(default_factory=list)

    def settle(self, notice: Notice, now: datetime, *, at_intent: bool = False) -> None:
        rules.settle(notice, now, self.is_halted, at_intent=at_intent)

    def is_halted(self, notice: Notice, channel: str) -> bool:
        """6.4: by everything, channel, provider, template, account or event."""
        scopes = {
            "all",
            f"channel:{channel}",
            f"provider:{notice.on(channel).provider}",
            "template:password-reset@1",
            f"account:{notice.account}",
            f"event:{notice.event}",
        }
        return bool(scopes & self.halts)

    def is_paused(self, provider: str, now: datetime) -> bool:
        return provider in self.pauses and now < self.pauses[provider]

    def is_shut(self, provider: str, turn: datetime | None) -> bool:
        """Whether a start must not be: the turn to try the provider is not the starter's."""
        return self.pauses.get(provider) != turn

    def take_turn(self, provider: str, channel: str, now: datetime) -> datetime | None:
        """After a pause one claim tries; to all others the provider stays paused."""
        if provider in self.pauses:
            self.pauses[provider] = now + self.terms.turn(channel)
        return self.pauses.get(provider)

    def give_turn_back(self, provider: str, turn: datetime | None, now: datetime) -> None:
        if turn is not None and not self.is_shut(provider, turn):
            self.pauses[provider] = min(turn, now)

    def heard(
        self, provider: str, turn: datetime | None, kind: str, until: datetime | None
    ) -> None:
        """A refusal about us, until when; or what a try came to."""
        ours = turn is not None and not self.is_shut(provider, turn)
        if until is not None:
            standing = until if ours else self.pauses.get(provider, until)
            self.pauses[provider] = max(until, standing)
        elif ours and kind in {"accepted", "refused"}:
            del self.pauses[provider]

    def in_flight(self, scope: str, now: datetime) -> set[tuple[str, str]]:
        """11.7: every intent without a recorded answer and every unfinished lease."""
        alone = replace(self, halts={scope})
        return {
            (notice.event, each.channel)
            for notice in self.notices.values()
            for each in notice.both
            if alone.is_halted(notice, each.channel)
            and (each.owner is not None or (now < notice.expires_at and _may_still_call(each)))
        }

    # --- admission, section 4

    def admit(self, name: str, event: Event, now: datetime) -> Notice:
        notice = self._planned(name, event, now)
        self.notices[name] = notice
        self.admitted.append((event.account, now))
        notice.rows.clear()
        notice.note(None, "event_admitted")
        self._open_deliveries(notice, event, now)
        if event.supersedes:
            self.superseding.append(event)
            for other in self.notices.values():
                if other.account == event.account and other.requested_at < event.requested_at:
                    other.superseded = True
                    if not other.canceled and now < other.expires_at:
                        self.cancel(other, "superseded", now)
        return notice

    def _planned(self, name: str, event: Event, now: datetime) -> Notice:
        terms = self.terms
        life = (event.expires_at - event.requested_at).total_seconds()
        fallback = max(
            min(now + terms.window_of(life), event.expires_at - terms.reserve_of(life)),
            now + timedelta(seconds=terms.call + terms.poll),
        )
        stops = {
            "email": event.expires_at - timedelta(seconds=terms.email_margin),
            "sms": event.expires_at - timedelta(seconds=terms.sms_margin),
        }
        email, sms = (
            Delivery(channel, "", stops[channel], now, self.providers[channel])
            for channel in ("email", "sms")
        )
        return Notice(
            name,
            event.account,
            event.event,
            event.mode,
            terms,
            now,
            event.requested_at,
            event.expires_at,
            fallback,
            email,
            sms,
        )

    def _open_deliveries(self, notice: Notice, event: Event, now: datetime) -> None:
        if now >= notice.expires_at:
            return self._open(notice, ("expired", "expired_on_arrival"))
        later = [
            each
            for each in self.superseding
            if each.account == event.account and each.requested_at > event.requested_at
        ]
        if later:
            notice.canceled = notice.superseded = True
            return self._open(notice, ("canceled", "reset_superseded"))
        why_no_email = self._email_refused(event, now)
        email = ("suppressed", why_no_email) if why_no_email else ("queued", "primary_selected")
        return self._open(notice, email, self._text(notice, event, now, email))

    @staticmethod
    def _open(notice: Notice, email: tuple[str, str], sms: tuple[str, str] | None = None) -> None:
        for delivery, (state, reason) in ((notice.email, email), (notice.sms, sms or email)):
            notice.move(delivery, state, reason)
            notice.rows[-1] = type(notice.rows[-1])(delivery.channel, None, state, reason)
        if notice.sms.state != "standby":
            notice.fallback_at = None

    def _email_refused(self, event: Event, now: datetime) -> str | None:
        if event.mode == "sms_only":
            return "excluded_by_policy"
        if event.email in {"none", "invalid"}:
            return {"none": "no_destination", "invalid": "invalid_destination"}[event.email]
        if event.email_consent is False:
            return "no_consent"
        return self._capped(event, now)

    def _text(
        self, notice: Notice, event: Event, now: datetime, email: tuple[str, str]
    ) -> tuple[str, str]:
        if why_not := self._text_refused(event, now):
            return "suppressed", why_not
        if event.mode != "email_then_sms":
            return "queued", "primary_selected"
        if email[0] == "suppressed":
            return "queued", "fallback_email_suppressed"
        room = timedelta(seconds=self.terms.call + self.terms.poll)
        assert notice.fallback_at is not None
        if notice.fallback_at + room > notice.sms.stop_at:
            return "suppressed", "life_too_short_for_fallback"
        return "standby", "fallback_reserved"

    def _text_refused(self, event: Event, now: datetime) -> str | None:
        if event.mode == "email_only":
            return "excluded_by_policy"
        if event.sms in {"none", "invalid"}:
            return {"none": "no_destination", "invalid": "invalid_destination"}[event.sms]
        if event.sms_consent is not True:
            return "no_consent"
        if self.regions is not None and event.region not in self.regions:
            return "region_not_permitted"
        return self._capped(event, now)

    def _capped(self, event: Event, now: datetime) -> str | None:
        hour = timedelta(hours=1)
        recent = [at for account, at in self.admitted[:-1] if account == event.account]
        count = sum(at > now - hour for at in recent)
        return "account_cap_reached" if self.cap and count >= self.cap else None

    # --- what comes from outside

    def cancel(self, notice: Notice, why: str, now: datetime) -> None:
        """What has not left is canceled; the first reason stays, and what is over stays over."""
        over = now >= notice.expires_at or notice.state()[0] in {"failed", "suppressed", "expired"}
        if not notice.canceled and not over:
            notice.canceled = True
            notice.note(None, "cancel_recorded")
            for each in notice.both:
                if each.state in CAN_BE_STOPPED:
                    notice.move(each, "canceled", REASON_OF[why])
        self.settle(notice, now)

    def shorten(self, notice: Notice, expires_at: datetime, now: datetime) -> None:
        """The link answer's expiry only ever shortens: all boundaries move with it."""
        span = notice.expires_at - expires_at
        if span > timedelta(0):
            notice.note(None, "life_shortened")
            self._move_fallback(notice, expires_at)
            notice.expires_at = expires_at
            for each in notice.both:
                each.stop_at -= span
        self.settle(notice, now)

    def _move_fallback(self, notice: Notice, expires_at: datetime) -> None:
        if notice.fallback_at is None:
            return
        life = max((expires_at - notice.created_at).total_seconds(), 0)
        reserved = expires_at - self.terms.reserve_of(life)
        earliest = notice.created_at + timedelta(seconds=self.terms.call + self.terms.poll)
        notice.fallback_at = max(min(notice.fallback_at, reserved), earliest)

    # --- sweeps, section 9

    def sweep_expiry(self, now: datetime) -> None:
        for notice in self.notices.values():
            if any(_is_over(notice, each, now) for each in notice.both):
                self.settle(notice, now)

    def sweep_fallback(self, now: datetime) -> None:
        for notice in self.notices.values():
            due = notice.fallback_at is not None and now >= notice.fallback_at
            waits = notice.sms.state == "standby" and now < notice.sms.stop_at
            if due and waits and not self.is_halted(notice, "sms"):
                self.settle(notice, now)


def _may_still_call(delivery: Delivery) -> bool:
    """An intent whose caller has not told how it ended, while that can matter."""
    waits = any(
        each.open and (not each.answered or each.replay_waits) for each in delivery.attempts
    )
    return waits and delivery.state not in ENDED


def _is_over(notice: Notice, delivery: Delivery, now: datetime) -> bool:
    if delivery.state in {"standby", "queued"}:
        return now >= delivery.stop_at
    unproven = delivery.state == "unknown" or (delivery.state == "accepted" and not delivery.final)
    return unproven and now >= notice.expires_at
