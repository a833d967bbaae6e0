"""P12: the same facts in two orders, told of two notices, lead to one and the same state.

Left out is what the design excepts (11.8): a provider that contradicts itself, and facts on
either side of the fallback moment.
"""

from __future__ import annotations

import random
from typing import Any

from tests.machine.example import Worker
from tests.machine.model.facts import Notice
from tests.machine.openings import words
from tests.machine.pair import Pair

ANSWERS = ("accepted", "unknown", "refused", "not accepted", "none")
TOLD = (
    "accepted",
    "delivered",
    "failed",
    "delayed",
    "by id: accepted",
    "by id: delivered",
    "by id: failed",
)
NUMBERS = {
    "accepted": words.ACCEPTED,
    "unknown": words.TIMEOUT,
    "refused": words.REFUSED,
    "not accepted": words.NOT_ACCEPTED,
}


def same_whatever_the_order(
    pair: Pair, answer: str, told: list[str], orders: Any, channel: str
) -> None:
    """Play the facts to two new notices, each in an order of its own."""
    proves_taken = any(each != "delayed" for each in told)
    if answer in {"refused", "not accepted"} and proves_taken:
        return
    facts = [*told, *([f"answer: {answer}"] if answer != "none" else [])]
    found = [_started(pair, channel, account) for account in (2, 3)]
    workers = [each for each in found if each]
    if len(workers) < 2:
        return
    for worker, order in zip(workers, orders, strict=True):
        _play(pair, worker, facts, order)
    pair.sweep("receipts")
    first, second = (_end(worker.notice, channel) for worker in workers)
    assert first == second, f"P12: {first} and {second}"


def _started(pair: Pair, channel: str, account: int) -> Worker | None:
    mode = "email_only" if channel == "email" else "sms_only"
    notice = pair.admit(600, mode=mode, account=account, region="GB")
    found = [each for each in pair.claim(channel, 9) if each.notice is notice]
    if not found:
        return None
    pair.link(found[0])
    pair.render(found[0])
    return found[0] if pair.intend(found[0]) else None


def _play(pair: Pair, worker: Worker, facts: list[str], order: random.Random) -> None:
    facts = order.sample(facts, len(facts))
    attempt = worker.notice.on(worker.channel).attempts[-1]
    for fact in facts:
        if fact.startswith("answer: "):
            words.finish(pair, worker, NUMBERS[fact.removeprefix("answer: ")])
        else:
            how = "id" if fact.startswith("by id: ") else "both"
            pair.tell(attempt, fact.removeprefix("by id: "), how)


def _end(notice: Notice, channel: str) -> tuple[Any, ...]:
    """What the person, support and the next step can see of it."""
    delivery = notice.on(channel)
    return (
        notice.state(),
        delivery.state,
        delivery.may_have_left,
        delivery.left,
        delivery.attempts[-1].open,
    )
