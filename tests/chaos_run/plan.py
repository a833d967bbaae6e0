"""What one run does: how many of everything, and who the people are. All of it follows a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import phonenumbers

from peers.auth_service import Person
from peers.events import Event, build_event
from peers.twilio_words import BY_DIGITS

FAULTY = 0.22
"""The share of people, on each channel, to whom a message meets a fault."""
SLOW = 0.15
"""The share of the others whose mail the provider takes a second to answer."""

POLICY = """
retry_backoff_s = [0.5, 1.0, 2.0]
retry_jitter = 0.1
poll_every_s = 2.0
reconcile_after_s = [1.0, 2.0, 4.0]
settle_s = 3.0
lease_s = 4.5
sweep_every_s = 0.5
provider_pause_s = 1.0
absence_conclusive = ["postmark"]

[safety_margin_s]
email = 1.0
sms = 1.0

[fallback_reserve]
share = 0.2
floor_s = 8.0
cap_s = 12.0

[observation_window]
share = 0.2
floor_s = 4.0
cap_s = 12.0

[call_timeout_s]
email = 2.0
sms = 2.0

[final_reply_timeout_s]
email = 2.0
"""
"""Short times, so that expiry and fallback come about within the run (seconds)."""
CALL_S = 2.0
MARGIN_S = 1.0

UNHEARD = (
    "hang-after-accept", "reset-after-accept", "drop-after-accept", "error-after-accept",
    "truncate", "junk", "lost-after-accept", "unavailable", "proxy-page", "hang-and-silent",
    "unseen",
)  # fmt: skip
TOLD_ODDLY = (
    "silent", "duplicate", "reordered", "late", "stranger", "callback-first", "bounce-hard",
    "greylist", "inactive",
)  # fmt: skip
POSTMARK_FAULTS = (*UNHEARD, *TOLD_ODDLY, "bad-address", "mailbox-full")
RESEND_FAULTS = (*UNHEARD, *TOLD_ODDLY)
TEXT_FAULTS = (
    "hang-after-accept", "reset-after-accept", "error-after-accept", "lost-after-accept",
    "truncate", "junk", "unavailable", "rate-limited", "bad-address", "unreachable", "filtered",
    "lost", "silent", "duplicate", "reordered", "late", "stranger", "slow", "slow",
    "callback-first", "hang-and-silent", "queued",
)  # fmt: skip
SMTP_FAULTS = (
    "hang-after-dot", "reset-after-dot", "drop-after-dot", "garbage-after-dot", "lost-after-dot",
    "busy-after-dot", "greylist", "refuse-rcpt", "disabled", "drop-at-rcpt", "drop-at-data",
    "drop-in-body",
)  # fmt: skip
MAIL_FAULTS = {"postmark": POSTMARK_FAULTS, "smtp": SMTP_FAULTS, "resend": RESEND_FAULTS}
LINK_FAULTS = ("unavailable", "slow", "too-slow", "drop", "used", "no-destination", "malformed")
REPEATED = 0.05
"""The share of events that are posted again although they were answered."""

LIVES = ((0.70, 40.0, 60.0), (0.15, 20.0, 30.0), (0.10, 9.0, 14.0), (0.05, 3.0, 6.0))
"""Share, and between how many and how many seconds an event lives."""
SHORT_LIVES = ((0.70, 14.0, 18.0), (0.20, 9.0, 12.0), (0.10, 3.0, 6.0))


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. Times are seconds; `rate` is events a second at most."""

    events: int = 10_000
    kills: int = 300
    restarts: int = 6
    processes: int = 4
    workers: int = 8
    senders: int = 8
    rate: float = 20.0
    seed: int = 1
    mail: str = "postmark"
    link_faulty: float = 0.03
    """The share of people about whom the auth service answers oddly or not."""
    aim_s: float = 1.5
    """How long a kill waits for its victim to have an attempt in flight."""
    lives: Sequence[tuple[float, float, float]] = LIVES


@dataclass(frozen=True, slots=True)
class Case:
    """One person's reset: what becomes of it on each channel, and how it is posted."""

    number: int
    tag: str
    mail_fate: str
    link_fate: str
    life_s: float
    repeats: int
    person: Person

    @property
    def reset_request_id(self) -> str:
        return f"link:{self.link_fate}:rr-{self.tag}" if self.link_fate else f"rr-{self.tag}"

    @property
    def event_id(self) -> str:
        return f"evt-{self.tag}"

    def event(self) -> Event:
        """The event, whose life begins now."""
        return build_event(
            tag=self.tag,
            life_s=self.life_s,
            reset_request_id=self.reset_request_id,
            destinations={"email": self.person.email, "sms": self.person.sms},
        )


def cases(plan: Plan) -> list[Case]:
    """Everybody, in the order in which their events are posted."""
    chance, numbers = random.Random(plan.seed), Numbers()
    faults = MAIL_FAULTS[plan.mail]
    return [_case(plan, chance, numbers, faults, number) for number in range(plan.events)]


def _case(
    plan: Plan, chance: random.Random, numbers: Numbers, faults: Sequence[str], number: int
) -> Case:
    tag = f"{plan.seed:x}-{number}"
    mail_fate = _fault(chance, faults, FAULTY) or _fault(chance, ["slow-1"], SLOW) or "deliver"
    text_fate = _fault(chance, TEXT_FAULTS, FAULTY) or "deliver"
    return Case(
        number,
        tag,
        mail_fate,
        _fault(chance, LINK_FAULTS, plan.link_faulty),
        _life(chance, plan.lives),
        chance.randint(1, 2) if chance.random() < REPEATED else 0,
        Person(f"{mail_fate}+{tag}@example.test", numbers.next_for(text_fate)),
    )


def _fault(chance: random.Random, faults: Sequence[str], share: float) -> str:
    return chance.choice(faults) if chance.random() < share else ""


def _life(chance: random.Random, lives: Sequence[tuple[float, float, float]]) -> float:
    shares = [share for share, _, _ in lives]
    _, least, most = chance.choices(lives, shares)[0]
    return chance.uniform(least, most)


class Numbers:
    """Gives each person a number of their own that asks for a fate (`peers.twilio_words`)."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def next_for(self, fate: str) -> str:
        """The next unused number in North America's ranges kept for fiction."""
        places = [each for each, name in BY_DIGITS.items() if name == fate]
        places = places or [each for each in range(100) if each not in BY_DIGITS]
        area, place = divmod(self._given[fate], len(places))
        self._given[fate] += 1
        return _number(areas()[area], places[place])


@cache
def areas() -> tuple[int, ...]:
    """The area codes whose every fictitious number is a valid one."""
    return tuple(area for area in range(200, 1000) if _is_valid(_number(area, 0)))


def _number(area: int, place: int) -> str:
    return f"+1{area}55501{place:02d}"


def _is_valid(number: str) -> bool:
    parsed = phonenumbers.parse(number)
    kind = phonenumbers.number_type(parsed)
    return phonenumbers.is_valid_number(parsed) and (
        kind is phonenumbers.PhoneNumberType.FIXED_LINE_OR_MOBILE
    )
