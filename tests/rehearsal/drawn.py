"""Scripts drawn from a seed: providers, people and processes that do anything at any time."""

from __future__ import annotations

import random
from typing import Any, get_args

from notifier.domain.admission_plan import DestinationFact
from notifier.domain.event import PolicyMode
from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.rehearsal.script import (
    Answer,
    Call,
    Cancel,
    ChannelScript,
    Halt,
    LinkTrouble,
    Look,
    Outage,
    Report,
    Script,
)

LINK_WAITS_S = 2.5
"""The wait after a link that was not given has jitter on the real side; a worker comes later."""

MODES = (PolicyMode.EMAIL_THEN_SMS,) * 6 + (PolicyMode.EMAIL_ONLY, PolicyMode.SMS_ONLY)
STATUSES = (
    ReceiptStatus.DELIVERED,
    ReceiptStatus.DELIVERED,
    ReceiptStatus.FAILED,
    ReceiptStatus.ACCEPTED,
    ReceiptStatus.DELAYED,
    ReceiptStatus.UNMAPPED,
)


def drawn(seed: int) -> Script:
    """The script of a seed."""
    chance = random.Random(seed)
    life = chance.choice((60.0, 300.0, 600.0, 600.0, 900.0))
    return Script(
        title=f"seed {seed}",
        life_s=life,
        mode=chance.choice(MODES),
        bounces=chance.random() < 0.3,
        policy=_policy(chance),
        email=_channel(chance, life, chance.choice(("postmark", "postmark", "resend", "smtp"))),
        sms=_channel(chance, life, "twilio"),
        halts=_some(chance, lambda: _halt(chance, life)),
        outages=_some(chance, lambda: Outage(*_span(chance, life))),
        links=_some(chance, lambda: _link(chance, life)),
        cancels=_some(chance, lambda: _cancel(chance, life)),
    )


def _policy(chance: random.Random) -> dict[str, Any]:
    return {
        "on_unknown": chance.choice(("send", "hold")),
        "on_unconfirmed": chance.choice(("send", "send", "hold")),
        "relay_acceptance": chance.choice(("final", "unconfirmed")),
        "absence_conclusive": chance.choice(([], ["postmark"])),
        "settle_s": 20.0,
        "sweep_every_s": chance.choice((5.0, 7.0)),
        "retry_jitter": 0.0,
    }


def _channel(chance: random.Random, life: float, provider: Any) -> ChannelScript:
    asked = provider != "twilio"  # what a search by destination finds is not scripted
    given = DestinationFact.GIVEN
    return ChannelScript(
        provider=provider,
        consent=chance.choice((True, True, True, None, False)),
        destination=chance.choice((given,) * 6 + (DestinationFact.NONE,)),
        pick_up_s=chance.choice((LINK_WAITS_S, LINK_WAITS_S, 20.0)),
        link_s=chance.choice((0.1, 2.0)),
        killed_claims=chance.choice((0, 0, 0, 1)),
        calls=tuple(_call(chance) for _ in range(chance.randint(1, 3))),
        reports=_some(chance, lambda: _report(chance, life), most=3),
        looks=_some(chance, lambda: _look(chance), most=3) if asked else (),
    )


def _call(chance: random.Random) -> Call:
    answer: Answer = chance.choice(("accepted", "accepted", *get_args(Answer)))
    wait = chance.choice((None, 0.0, 45.0)) if answer == "not_accepted" else None
    return Call(answer, chance.choice((0.3, 5.0, 80.0)), Detail.PROVIDER_ERROR, wait)


def _report(chance: random.Random, life: float) -> Report:
    after_s = round(chance.uniform(0, 1.2 * life), 1)
    occurred_s = round(chance.uniform(0, after_s), 1) if chance.random() < 0.3 else None
    status = chance.choice(STATUSES)
    return Report(after_s, status, chance.choice((1, 1, 2)), None, occurred_s)


def _look(chance: random.Random) -> Look:
    found = chance.choice(("not_found", "not_found", "delivered", "accepted", "failed"))
    return Look(found, round(chance.uniform(0, 300), 1))  # type: ignore[arg-type]


def _halt(chance: random.Random, life: float) -> Halt:
    scope = chance.choice(("all", "channel:email", "channel:sms", "provider:twilio"))
    return Halt(scope, *_span(chance, life))


def _link(chance: random.Random, life: float) -> LinkTrouble:
    answer = chance.choice(("unavailable",) * 4 + ("no_destination", "not_permitted", "used"))
    return LinkTrouble(answer, *_span(chance, life))  # type: ignore[arg-type]


def _cancel(chance: random.Random, life: float) -> Cancel:
    why = chance.choice(("used", "superseded", "revoked", "operator"))
    return Cancel(round(chance.uniform(0, life), 1), why)  # type: ignore[arg-type]


def _span(chance: random.Random, life: float) -> tuple[float, float]:
    begin = round(chance.uniform(0, 0.8 * life), 1)
    return begin, begin + round(chance.uniform(5, life / 2), 1)


def _some(chance: random.Random, make: Any, most: int = 1) -> tuple[Any, ...]:
    """None of them half of the time."""
    if chance.random() < 0.5:
        return ()
    made = [make() for _ in range(chance.randint(1, most))]
    return tuple(sorted(made, key=lambda each: getattr(each, "after_s", 0.0)))
