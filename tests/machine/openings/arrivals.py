"""What becomes of an event on arrival."""

from __future__ import annotations

from typing import Any

from tests.machine.openings.words import BOUNCES, UNCONFIRMED, new, opening, start
from tests.machine.pair import Pair


@opening()
def plain(pair: Pair, salt: int) -> None:
    new(pair, salt)


@opening()
def arrivals(pair: Pair, salt: int) -> None:
    for number in range(salt, salt + 3):
        changes: dict[str, Any] = (
            {"email": "none"},
            {"email": "invalid", "sms": "given"},
            {"sms": "none"},
            {"sms": "invalid", "email": "given"},
            {"email_consent": False},
            {"sms_consent": None},
            {"mode": "sms_only"},
            {"mode": "email_only"},
            {"mode": "parallel"},
            {"region": "FR"},
        )[number % 10]
        new(pair, salt, account=number % 4, **changes)


@opening(BOUNCES)
def elsewhere(pair: Pair, salt: int) -> None:
    new(pair, salt, region=("FR", None)[salt % 2])


@opening()
def late_or_short(pair: Pair, salt: int) -> None:
    pair.admit(300, late=301 + salt, region="GB")
    pair.admit(120 + salt % 60, region="GB", account=1)
    pair.admit(200, late=190, region="GB", account=2)


@opening()
def superseded(pair: Pair, salt: int) -> None:
    first = new(pair, salt)
    if salt % 3 == 1:
        pair.claim("email")
    if salt % 3 == 2:
        start(pair)
    pair.jump(1)
    pair.admit(600, region="GB", supersedes_earlier=True)
    pair.admit(600, late=30, region="GB")
    pair.admit_again(first, other_content=bool(salt % 2))


@opening(UNCONFIRMED)
def capped(pair: Pair, salt: int) -> None:
    for number in range(3):
        new(pair, salt, account=number // 3)
