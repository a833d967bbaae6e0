"""How many signed events a second, measured in turns with the bare statement."""

from __future__ import annotations

import time
import uuid
from statistics import median

from tests.bench import statement
from tests.bench.figures import Figure, quantile
from tests.bench.ground import App, Ground
from tests.bench.load import Answer, Order, post

CONNECTIONS = 16
WARM_UP_S = 1.0
STATEMENTS_A_SECOND = 40
"""By each of pgbench's clients; on a quiet machine they make twice as many."""
MORE_THAN_ANYBODY = 2000
"""Requests made ready for each second: nobody answers that many."""


def measured(ground: Ground, app: App, *, rounds: int, seconds: float) -> dict[str, Figure]:
    """Rate, its share of the statement's own rate, and the latency, each the rounds' median."""
    burst(ground, app, WARM_UP_S)
    each = int(seconds * STATEMENTS_A_SECOND)
    rates, shares, middles, tails = [], [], [], []
    for _ in range(rounds):
        bare = statement.per_second(ground, each)
        answers = burst(ground, app, seconds)
        bare = (bare + statement.per_second(ground, each)) / 2
        rates.append(rate_of(answers))
        shares.append(rates[-1] / bare)
        took_ms = [each.took_s * 1000 for each in answers]
        middles.append(quantile(took_ms, 0.5))
        tails.append(quantile(took_ms, 0.99))
    return {
        "rate": Figure("admission: 202s", median(rates), "1/s"),
        "share": Figure("admission: share of the bare statement", median(shares), "", at_least=0.2),
        "p50": Figure("admission: answer p50", median(middles), "ms"),
        "p99": Figure("admission: answer p99", median(tails), "ms", at_most=50),
    }


def burst(ground: Ground, app: App, seconds: float) -> list[Answer]:
    """Post as fast as sixteen connections can; every answer must be a 202."""
    count = int(seconds * MORE_THAN_ANYBODY)
    answers = post(order(ground, app, CONNECTIONS, count, seconds))
    refused = {each.status for each in answers} - {202}
    assert not refused, f"answered {refused}"
    return answers


def order(ground: Ground, app: App, connections: int, count: int, seconds: float) -> Order:
    """New events; posted as fast as the answers come."""
    prefix = uuid.uuid4().hex[:12]
    return Order(app.url, ground.known.ingest, prefix, time.time(), connections, count, seconds)


def rate_of(answers: list[Answer]) -> float:
    """Answers a second, from the first post to the last answer."""
    begin = min(each.due_at for each in answers)
    return len(answers) / (max(each.came_at for each in answers) - begin)


def replayed(ground: Ground, app: App, count: int) -> dict[str, Figure]:
    """One connection: the time of a first post, and of the same post again."""
    asked = order(ground, app, 1, count, seconds=60)
    first, again = (quantile([each.took_s for each in post(asked)], 0.5) for _ in range(2))
    return {
        "first": Figure("one connection: first answer p50", first * 1000, "ms"),
        "replay": Figure("one connection: replayed answer p50", again * 1000, "ms"),
        "replay_share": Figure("replayed over first", again / first, "", at_most=1.5),
    }
