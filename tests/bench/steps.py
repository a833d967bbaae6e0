"""The steps of sending, one after the other on one connection, beside the plainest write."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from notifier.assembly.application import Application, compose
from notifier.domain.event import Transport
from notifier.domain.event_document import parse_event
from notifier.domain.outcome import Accepted
from notifier.domain.states import Channel
from notifier.flow.wording import event_rules
from notifier.logs import configure_logs
from notifier.settings import load_settings
from notifier.store.ledger import claim as claims
from notifier.store.ledger import intent as intents
from notifier.store.ledger.claim import Claim, Take
from peers.events import build_event
from tests.bench.figures import Figure
from tests.bench.ground import Ground

LEASE = timedelta(seconds=60)
PLAIN = "INSERT INTO bench_plain VALUES (%s, db_now())"


@dataclass
class Watch:
    """Adds up time and things done."""

    seconds: float = 0.0
    done: int = 0

    @contextmanager
    def running(self, things: int = 1) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - begin
        self.done += things

    @property
    def each_ms(self) -> float:
        return self.seconds / self.done * 1000


def measured(ground: Ground, times: int) -> list[Figure]:
    """Claims of ten and of a hundred rows, then intent and record of each of those rows."""
    configure_logs(io.StringIO())
    parts = compose(load_settings(ground.settings()), ground.url)
    try:
        return _figures(parts, times)
    finally:
        configure_logs(sys.stderr)
        parts.web.close()
        parts.work.close()


def _figures(parts: Application, times: int) -> list[Figure]:
    plain = _plain_writes(parts, times * 10)
    tens, hundreds = Watch(), Watch()
    rows: list[Claim] = []
    for _ in range(times):
        _admit(parts, 110)
        rows += _claim(parts, 10, tens)
        rows += _claim(parts, 100, hundreds)
    intent, record = Watch(), Watch()
    for number, row in enumerate(rows[: times * 20]):
        _send(parts, row, f"bench-{row.notice_id.hex[-12:]}-{number}", intent, record)
    return [
        Figure("plain durable insert", plain.each_ms, "ms"),
        _beside(plain, tens, "claim of 10 rows", at_most=15),
        _beside(plain, hundreds, "claim of 100 rows", at_most=80),
        _beside(plain, intent, "intent", at_most=10),
        _beside(plain, record, "record", at_most=15),
        Figure("claim of 100 rows, a row", hundreds.each_ms / 100, "ms"),
        Figure("intents on one connection", 1000 / intent.each_ms, "1/s"),
        Figure("records on one connection", 1000 / record.each_ms, "1/s"),
    ]


def _beside(plain: Watch, watch: Watch, name: str, *, at_most: float) -> Figure:
    return Figure(f"{name}, in plain inserts", watch.each_ms / plain.each_ms, "", at_most=at_most)


def _plain_writes(parts: Application, times: int) -> Watch:
    watch = Watch()
    with parts.work.connection() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bench_plain (n bigint, at timestamptz)")
        for number in range(times):
            with watch.running():
                connection.execute(PLAIN, [number], prepare=True)
        connection.execute("DROP TABLE bench_plain")
    return watch


def _admit(parts: Application, count: int) -> None:
    rules, transport = event_rules(parts.shelf), Transport("msg", "key", "request")
    for _ in range(count):
        parts.admission.admit(parse_event(build_event(), datetime.now(UTC), rules), transport)


def _claim(parts: Application, slots: int, watch: Watch) -> list[Claim]:
    with parts.work.connection() as connection, watch.running():
        rows, _ = claims.claim(
            connection,
            channel=Channel.EMAIL,
            provider="smtp",
            owner="bench",
            take=Take(slots, LEASE),
        )
    assert len(rows) == slots
    return rows


def _send(parts: Application, row: Claim, reference: str, intent: Watch, record: Watch) -> None:
    with parts.work.connection() as connection, intent.running():
        told = intents.intent(
            connection,
            notice_id=row.notice_id,
            channel=row.channel,
            fence=row.fence,
            owner="bench",
            provider="smtp",
            reference=reference,
            message_digest="0" * 64,
            budget=LEASE,
            not_after=row.stop_at,
            turn_until=row.turn_until,
        )
    assert told.verdict is intents.Verdict.STARTED
    with record.running():
        parts.recorder.record(row, reference, Accepted(f"<{reference}>", "250 2.0.0"))
