"""From the 202 to the mail server's having the message, by one clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from peers.auth_service import made_up_person
from tests.bench.admission import order
from tests.bench.figures import Figure, quantile
from tests.bench.ground import App, Ground
from tests.bench.load import Answer, post, tag_of

CONNECTIONS = 16
ARRIVE_WITHIN_S = 60.0


def measured(ground: Ground, app: App, *, rate: float, seconds: float) -> list[float]:
    """Seconds from each 202 to `stored`, for posts at `rate` a second; all must arrive."""
    before = len(ground.inbox.journal())
    asked = order(ground, app, CONNECTIONS, int(rate * seconds), seconds + 10)
    asked = replace(asked, rate=rate)
    answers = post(asked)
    assert {each.status for each in answers} == {202}
    arrived = arrivals(ground, before, {recipient(asked.prefix, each) for each in answers})
    return [max(arrived[recipient(asked.prefix, each)] - each.came_at, 0.0) for each in answers]


def arrivals(ground: Ground, before: int, recipients: set[str]) -> dict[str, float]:
    """When (Unix time) the inbox had each recipient's message."""
    ground.inbox.wait_for(
        count=already(ground, before) + len(recipients), timeout_s=ARRIVE_WITHIN_S, phase="stored"
    )
    return {
        str(entry["recipient"]): datetime.fromisoformat(str(entry["at"])).timestamp()
        for entry in ground.inbox.journal(since=before, phase="stored")
        if entry["recipient"] in recipients
    }


def already(ground: Ground, before: int) -> int:
    """Messages among the journal's first entries."""
    return sum(entry["phase"] == "stored" for entry in ground.inbox.journal()[:before])


def recipient(prefix: str, answer: Answer) -> str:
    """To whom an answered event's mail goes."""
    return str(made_up_person(f"rr-{tag_of(prefix, answer.number)}").email)


def figures(
    name: str, delays_s: list[float], *, p50_ms: float | None, p99_ms: float
) -> list[Figure]:
    """Middle and tail."""
    middle, tail = quantile(delays_s, 0.5) * 1000, quantile(delays_s, 0.99) * 1000
    return [
        Figure(f"{name}: 202 to stored p50", middle, "ms", at_most=p50_ms),
        Figure(f"{name}: 202 to stored p99", tail, "ms", at_most=p99_ms),
    ]
