"""Lays a seeded day out in a real database, moment by moment, and has the real rules look at it.

What is written is what the product would have written by then: counts a minute, open work,
receipts, pauses, runs of sweeps. What reads it is the product's own.
"""

from __future__ import annotations

import heapq
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from notifier.domain.policy import default_policy
from notifier.flow.policies import PolicyShelf
from notifier.signals.judging import Judge
from notifier.store.database import Database, PooledConnection
from tests.database import Clock
from tests.gamedays.traffic import DAY_S, EMAIL, LIFE_S, Day, Life

MIDNIGHT: Final = datetime(2026, 3, 2, tzinfo=UTC)
CLOSE_LOOK_S: Final = 5.0
SWEEPS: Final = ("claim", "expiry", "fallback", "rescue", "receipts", "poll", "rollup")
KEPT_S: Final = 900.0
"""Notices older than this are taken away: nothing reads them any more."""

CLEAR: Final = "DELETE FROM delivery; DELETE FROM notice WHERE created_at < "
NOTICE: Final = """
INSERT INTO notice (notice_id, event_id, reset_request_id, account_id, template_id,
                    template_revision, locale_used, policy_revision, mode, state, created_at,
                    expires_at, seq, head, changed_at)
SELECT id, id::text, id::text, id::text, 'password-reset', '1', 'en', 1, 'email_then_sms',
       'email_pending', at, at + %(life)s, 1, '', at
  FROM unnest(%(ids)s::uuid[], %(at)s::timestamptz[]) AS n (id, at)
"""
OPEN: Final = """
INSERT INTO delivery (notice_id, channel, state, reason, provider, stop_at, expires_at, due_at,
                      changed_at)
SELECT id, 'email', state, 'seeded', %(provider)s, at + %(life)s - interval '15 s',
       at + %(life)s, at, changed
  FROM unnest(%(ids)s::uuid[], %(states)s::text[], %(at)s::timestamptz[],
              %(changed)s::timestamptz[]) AS d (id, state, at, changed)
"""
COUNT: Final = """
INSERT INTO rollup_count AS r (minute, signal, channel, provider, reason, region, template, n)
SELECT minute, signal, CASE provider WHEN '' THEN '' WHEN 'twilio' THEN 'sms' ELSE 'email' END,
       provider, reason, region, '', n
  FROM unnest(%(minute)s::timestamptz[], %(signal)s::text[], %(provider)s::text[],
              %(reason)s::text[], %(region)s::text[], %(n)s::bigint[])
       AS c (minute, signal, provider, reason, region, n)
ON CONFLICT (minute, signal, channel, provider, reason, region, template)
DO UPDATE SET n = r.n + excluded.n
"""
HEARD: Final = """
INSERT INTO receipt (receipt_id, provider, account, identity, source, status, final, received_at,
                     applied_at)
VALUES (%(id)s, %(provider)s, 'one', uuid_send(%(id)s), 'callback', 'delivered', true, %(at)s,
        %(at)s)
"""
PAUSE: Final = """
INSERT INTO provider_pause (provider, detail, since, until)
VALUES (%(provider)s, 'rate_limited', %(since)s, %(until)s)
ON CONFLICT (provider) DO UPDATE SET since = excluded.since, until = excluded.until
"""
RAN: Final = """
INSERT INTO sweep_run AS r (name, owner, epoch, started_at, finished_at)
SELECT name, 'leader', 1, %(at)s::timestamptz, %(at)s::timestamptz
  FROM unnest(%(names)s::text[]) AS name
ON CONFLICT (name) DO UPDATE
   SET started_at = excluded.started_at, finished_at = excluded.finished_at
"""


@dataclass
class QuietDay:
    """One day over a database of its own, which is written past the product's own guards."""

    database: Database
    clock: Clock
    seed: int
    every_s: float
    first_s: float = 0.0
    last_s: float = DAY_S
    day: Day = field(init=False)
    now_s: float = field(init=False)
    looks: int = 0
    _born: int = 0
    _ids: dict[int, uuid.UUID] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.day = Day(self.seed)
        self.now_s = self.first_s
        shelf = PolicyShelf(self.database)
        shelf.begin(default_policy(), "quiet")
        self.judge = Judge(shelf, "judge", lambda _: 5.0)

    def play(self) -> list[dict[str, Any]]:
        """Live through the day; what opened, which should be nothing."""
        self.clock.freeze(MIDNIGHT)
        with self.database.connection() as connection:
            held = False
            while self.now_s < self.last_s:
                usual_s = CLOSE_LOOK_S if held else self.every_s
                self.now_s = self.day.next_look(self.now_s, usual_s, CLOSE_LOOK_S)
                self.clock.freeze(self._at(self.now_s))
                self._lay_out(connection)
                self.judge.take_turn(connection)
                self.looks += 1
                held = bool(_standing(connection))
            return connection.execute(
                "SELECT rule, key, worst, threshold, opened_at FROM alert_episode "
                "WHERE state <> 'held'"
            ).fetchall()

    def _at(self, seconds: float) -> datetime:
        return MIDNIGHT + timedelta(seconds=seconds)

    def _lay_out(self, connection: PooledConnection) -> None:
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            self._notices(connection)
            self._counts(connection)
            self._rest(connection)

    def _notices(self, connection: PooledConnection) -> None:
        oldest = self._at(self.now_s - KEPT_S)
        connection.execute("DELETE FROM delivery")
        connection.execute("DELETE FROM notice WHERE created_at < %s", [oldest])
        fresh = []
        while self._born < len(self.day.lives):
            life = self.day.lives[self._born]
            if life.created > self.now_s:
                break
            self._ids[self._born] = uuid.UUID(int=self._born + (7 << 76))
            fresh.append((self._ids[self._born], self._at(life.created)))
            self._born += 1
        span = timedelta(seconds=LIFE_S)
        connection.execute(
            NOTICE, {"ids": [i for i, _ in fresh], "at": [at for _, at in fresh], "life": span}
        )
        self._open_work(connection, span)

    def _open_work(self, connection: PooledConnection, span: timedelta) -> None:
        rows = []
        for number in list(self._ids):
            life = self.day.lives[number]
            if life.created < self.now_s - KEPT_S:
                del self._ids[number]
            elif state := _state(life, self.now_s):
                since = life.created if state == "queued" else life.awaited_from
                at = self._at(life.created)
                rows.append((self._ids[number], state, at, self._at(since)))
        names = ("ids", "states", "at", "changed")
        columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
        connection.execute(OPEN, {**columns, "life": span, "provider": EMAIL})

    def _counts(self, connection: PooledConnection) -> None:
        counts: Counter[tuple[Any, ...]] = Counter()
        heard: dict[str, float] = {}
        while self.day.moments and self.day.moments[0].at <= self.now_s:
            each = heapq.heappop(self.day.moments)
            minute = self._at(each.at // 60 * 60)
            counts[minute, each.signal, each.provider, each.reason, each.region] += 1
            if each.signal == "delivered":
                heard[each.provider] = each.at
        names = ("minute", "signal", "provider", "reason", "region")
        columns = {name: [key[place] for key in counts] for place, name in enumerate(names)}
        connection.execute(COUNT, {**columns, "n": list(counts.values())})
        for provider, at in heard.items():
            values = {"id": uuid.UUID(int=int(at * 1000) + (1 << 80) + len(provider))}
            connection.execute(HEARD, {**values, "provider": provider, "at": self._at(at)})

    def _rest(self, connection: PooledConnection) -> None:
        for span in self.day.pauses:
            if span.holds(self.now_s):
                ends = {"since": self._at(span.begin), "until": self._at(span.end)}
                connection.execute(PAUSE, {**ends, "provider": EMAIL})
        silent = [each.begin for each in self.day.deploys if each.holds(self.now_s)]
        at = self._at(min([self.now_s, *silent]) - 2)
        connection.execute(RAN, {"names": list(SWEEPS), "at": at})


def _state(life: Life, now: float) -> str | None:
    if now < life.started:
        return "queued"
    return "accepted" if life.awaited_from <= now < life.awaited_to else None


def _standing(connection: PooledConnection) -> list[dict[str, Any]]:
    return connection.execute(
        "SELECT rule, key FROM alert_episode WHERE state <> 'resolved'"
    ).fetchall()
