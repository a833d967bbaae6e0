"""One seeded day as a product sees it when nothing is wrong: ordinary trouble included.

Each notice is given its moments when it is created: when it starts, what comes of it, when the
provider reports, and for few a text, an expiry. What a moment looks like to the rules is then
counted and laid out by `quiet`. The rates are those of a middling product: some eight thousand
notices a day, two in three of them in working hours.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

DAY_S: Final = 86_400.0
LIFE_S: Final = 600.0
FALLBACK_S: Final = 300.0
REGIONS: Final = (("GB", 0.6), ("IT", 0.3), ("FR", 0.1))
EMAIL, SMS = "postmark", "twilio"
AFTERWARDS_S: Final = 60.0
"""How long what ordinary trouble leaves behind is looked at closely."""
BUSIEST_PER_S: Final = 0.22
BY_HOUR: Final = (
    0.03, 0.02, 0.02, 0.02, 0.03, 0.06, 0.2, 0.5, 0.9, 1.0, 0.95, 0.9,
    0.8, 0.85, 0.9, 0.85, 0.8, 0.7, 0.5, 0.4, 0.35, 0.25, 0.12, 0.06,
)  # fmt: skip


@dataclass(frozen=True, order=True, slots=True)
class Moment:
    """Something that is counted at a time (seconds of the day)."""

    at: float
    signal: str
    provider: str = ""
    reason: str = ""
    region: str = ""


@dataclass(slots=True)
class Life:
    """One notice: when it was created and began, and while the provider is waited for."""

    created: float
    region: str
    started: float
    awaited_from: float = float("inf")
    awaited_to: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Span:
    """Some ordinary trouble that lasts."""

    begin: float
    end: float

    def holds(self, at: float) -> bool:
        """Whether it lasts at this time."""
        return self.begin <= at < self.end


@dataclass
class Day:
    """The whole day, made at once from its seed."""

    seed: int
    moments: list[Moment] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    pauses: list[Span] = field(default_factory=list)
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.peak = self._span(9, 17, 1_200)
        self.paced = self._span(8, 20, 90)
        self.deploys = [self._span(10, 16, 25), self._span(16, 18, 25)]
        self._ordinary_trouble()
        for at in self._arrivals():
            self._notice(at)
        heapq.heapify(self.moments)

    def _span(self, first_h: float, last_h: float, seconds: float) -> Span:
        begin = self.chance.uniform(first_h * 3600, last_h * 3600)
        return Span(begin, begin + seconds)

    def rate(self, at: float) -> float:
        """Notices a second."""
        usual = BUSIEST_PER_S * BY_HOUR[int(at // 3600) % 24]
        return usual * 5 if self.peak.holds(at) else usual

    def _arrivals(self) -> Iterator[float]:
        at, most = 0.0, BUSIEST_PER_S * 5
        while (at := at + self.chance.expovariate(most)) < DAY_S:
            if self.chance.random() < self.rate(at) / most:
                yield at

    def _ordinary_trouble(self) -> None:
        """What strangers and customers do by themselves."""
        noise = self.chance.uniform(0, DAY_S - 60)
        for number in range(4):
            self._count(noise + number, "callback_refused", EMAIL)
        for at in (each.begin for each in self.deploys):
            for number in range(2):
                self._count(at + 40 + number, "rescued")

    def _count(
        self, at: float, signal: str, provider: str = "", reason: str = "", region: str = ""
    ) -> None:
        if at < DAY_S:
            self.moments.append(Moment(at, signal, provider, reason, region))

    def _notice(self, at: float) -> None:
        [region] = self.chance.choices([r for r, _ in REGIONS], [w for _, w in REGIONS])
        self._count(at, "created", "", "", region)
        life = Life(at, region, self._start(at))
        self.lives.append(life)
        self._email(life, life.started)

    def _start(self, at: float) -> float:
        wait = self.chance.lognormvariate(0, 0.8) * (6 if self.peak.holds(at) else 0.5)
        ready = at + min(wait, 25.0)
        for span in (*self.deploys, *self.pauses):
            if span.holds(ready):
                ready = span.end + self.chance.uniform(0, 8)
        return ready

    def _email(self, life: Life, at: float) -> None:
        self._count(at, "started", EMAIL, "", life.region)
        drawn, answered = self.chance.random(), at + self.chance.lognormvariate(-0.7, 0.6)
        if self.paced.holds(at) and drawn < 0.5:
            self._count(answered, "not_accepted", EMAIL, "rate_limited", life.region)
            if not any(each.holds(answered) for each in self.pauses):
                self.pauses.append(Span(answered, answered + 20))
            self._email(life, self._start(answered + 30))
        elif drawn < 0.003:
            self._count(at + 10, "unknown", EMAIL, "timeout", life.region)
            self._lost(life)
        elif drawn < 0.018:
            self._count(answered, "refused", EMAIL, "invalid_destination", life.region)
            self._text(life, answered + 5, avoidable=False)
        elif drawn < 0.02:
            self._count(answered, "not_accepted", EMAIL, "unreachable", life.region)
            self._email(life, answered + 30)
        else:
            self._accepted(life, answered)

    def _accepted(self, life: Life, at: float) -> None:
        self._count(at, "accepted", EMAIL, "provider_accepted", life.region)
        life.awaited_from = at
        told = at + self.chance.lognormvariate(1.4, 1.0)
        drawn = self.chance.random()
        if drawn < 0.97:
            life.awaited_to = told
            self._count(told, "delivered", EMAIL, "receipt", life.region)
        elif drawn < 0.99:
            life.awaited_to = told
            self._count(told, "failed", EMAIL, "mailbox_full", life.region)
            self._text(life, told + 5, avoidable=False)
        else:
            life.awaited_to = life.created + LIFE_S
            self._lost(life)

    def _lost(self, life: Life) -> None:
        """Nobody knows what became of the email; nearly always a text follows."""
        if self.chance.random() < 0.97:
            self._text(life, life.created + FALLBACK_S, avoidable=self.chance.random() < 0.04)
        else:
            self._expires(life)

    def _text(self, life: Life, at: float, *, avoidable: bool) -> None:
        self._count(at, "fallback", SMS, "", life.region)
        self._count(at + 1, "started", SMS, "", life.region)
        if avoidable:
            self._count(at + 30, "avoidable", EMAIL, "", life.region)
        if self.chance.random() < 0.02:
            self._count(at + 2, "refused", SMS, "carrier_rejected", life.region)
            return
        self._count(at + 2, "accepted", SMS, "provider_accepted", life.region)
        if self.chance.random() < 0.98:
            self._count(at + 6, "delivered", SMS, "receipt", life.region)
        else:
            self._expires(life)

    def _expires(self, life: Life) -> None:
        self._count(life.created + LIFE_S + 3, "expired", EMAIL, "unconfirmed", life.region)

    def next_look(self, now: float, usual_s: float, close_s: float) -> float:
        """When to look again: closely while something is under way, and at its very beginning."""
        spans = (self.paced, *self.deploys, *self.pauses)
        if any(each.begin <= now < each.end + AFTERWARDS_S for each in spans):
            return now + close_s
        step = usual_s / 10 if self.peak.holds(now) else usual_s
        begins = [each.begin for each in (*spans, self.peak) if now < each.begin <= now + step]
        return min(begins, default=now + step)
