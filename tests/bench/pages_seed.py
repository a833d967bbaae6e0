"""A large installation's tables, written by set-based statements into a throw-away database.

The mix is in `pages_mix`; beside it stand 35 days (contacts: 29) of counts a minute, made by the
product's own statement from the rows of the trail, of samples of the queue, of looks that were
written down, of alerts, exports and halts. Chains are whole: hashed by the product's function.
Triggers are off meanwhile, so that a delivery may be born as what it has become.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.bench.pages_mix import HALTED, LIFE_S, OPEN, OPEN_LIFE_S, PAST, Fate
from tests.bench.pages_statements import FOR_EACH_BATCH, PLAN
from tests.people_fates import Step

BATCH: Final = 20_000
SESSIONS: Final = 3
HISTORY: Final = timedelta(days=35)
BESIDE: Final = Path(__file__).with_name("pages_beside.sql")
BIG: Final = (
    "admission", "reset_event", "notice", "contact", "delivery", "attempt", "receipt",
    "transition", "ticket_link", "rollup_count", "rollup_queue", "read_audit",
)  # fmt: skip
"""Tables that no page may read from end to end."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """How many notices, how many of them open, written as of `now`."""

    notices: int
    open: int
    now: datetime
    history: timedelta


def seed(admin: str, notices: int, opened: int, history: timedelta = HISTORY) -> Seeded:
    """Fill the empty, migrated database that `admin` (a superuser's address) leads to."""
    with _session(admin) as connection:
        row = connection.execute("SELECT db_now() AS now").fetchone()
        assert row
        found = Seeded(notices, opened, row[0], history)
        _describe_fates(connection)
    firsts = range(1, notices + 1, BATCH)
    with ThreadPoolExecutor(SESSIONS) as pool:
        list(pool.map(lambda first: _batch(admin, found, first), firsts))
    with _session(admin) as connection:
        values = {"now": found.now, "history": found.history, "notices": notices, "halted": HALTED}
        for statement in BESIDE.read_text().split(";\n"):
            if statement.strip():
                connection.execute(statement, values)
        connection.execute("VACUUM (ANALYZE)")
    return found


def _session(admin: str) -> psycopg.Connection[Any]:
    options = {
        "search_path": "notifier", "session_replication_role": "replica", "work_mem": "512MB",
        "synchronous_commit": "off", "enable_nestloop": "off", "timezone": "UTC",
    }  # fmt: skip
    words = " ".join(f"-c {name}={value}" for name, value in options.items())
    return psycopg.connect(
        admin, options=words, autocommit=True, cursor_factory=psycopg.ClientCursor
    )


def _batch(admin: str, found: Seeded, first: int) -> None:
    values = {
        "first": first, "last": min(first + BATCH - 1, found.notices), "now": found.now,
        "notices": found.notices, "past": found.notices - found.open, "open": found.open,
        "history": found.history,
    }  # fmt: skip
    with _session(admin) as connection, connection.transaction():
        for statement in (PLAN, "ANALYZE plan", *FOR_EACH_BATCH):
            connection.execute(statement, values)


def _describe_fates(connection: psycopg.Connection[Any]) -> None:
    """The mix as tables, which the statements join."""
    fates = [*_fates(PAST, is_open=False), *_fates(OPEN, is_open=True)]
    steps = [row for fate in (*PAST, *OPEN) for row in _steps(fate)]
    _write(connection, "bench_fate", fates)
    _write(connection, "bench_step", steps)
    _write(connection, "bench_delivery", [r for f in (*PAST, *OPEN) for r in _deliveries(f)])
    _write(connection, "bench_attempt", [r for f in (*PAST, *OPEN) for r in _attempts(f)])


def _fates(fates: Iterable[Fate], *, is_open: bool) -> Iterable[dict[str, Any]]:
    whole, low = sum(each.weight for each in fates), 0
    for fate in fates:
        yield {
            "fate": _name(fate, is_open=is_open), "is_open": is_open, "whole": whole, "low": low,
            "high": low + fate.weight, "state": fate.state, "basis": fate.basis,
            "canceled": fate.canceled, "revision": fate.template_revision,
            "last_seq": len(fate.steps), "life_s": OPEN_LIFE_S if is_open else LIFE_S,
        }  # fmt: skip
        low += fate.weight


def _name(fate: Fate, *, is_open: bool | None = None) -> str:
    return f"{'open' if (fate in OPEN if is_open is None else is_open) else 'past'}: {fate.name}"


def _steps(fate: Fate) -> Iterable[dict[str, Any]]:
    state: dict[str | None, str | None] = {}
    for seq, step in enumerate(fate.steps, 1):
        yield {
            "fate": _name(fate), "seq": seq, "after_s": step.after, "channel": step.channel,
            "occurred_s": step.after if step.occurred is None else step.occurred,
            "attempt": step.attempt, "actor": step.actor, "from_state": state.get(step.channel),
            "to_state": step.to, "reason": step.reason, "detail": step.detail,
            "provider": step.provider, "evidence": Jsonb(step.evidence) if step.evidence else None,
        }  # fmt: skip
        state[step.channel] = step.to


def _deliveries(fate: Fate) -> Iterable[dict[str, Any]]:
    for channel in ("email", "sms"):
        steps = [each for each in fate.steps if each.channel == channel]
        last = steps[-1]
        yield {
            "fate": _name(fate), "channel": channel, "state": last.to, "reason": last.reason,
            "detail": last.detail, "is_fallback": steps[0].reason == "fallback_reserved",
            "provider": next((each.provider for each in reversed(steps) if each.provider), None),
            "final_acceptance": fate.basis == "accepted" and last.to == "accepted",
            "attempts": max(each.attempt or 0 for each in steps),
            "left_s": _when(steps, "accepted"), "arrived_s": _when(steps, "delivered"),
            "changed_s": last.after,
        }  # fmt: skip


def _when(steps: Iterable[Step], state: str) -> float | None:
    return next((each.after for each in steps if each.to == state), None)


def _attempts(fate: Fate) -> Iterable[dict[str, Any]]:
    for begun in (each for each in fate.steps if each.to == "attempted"):
        number = (begun.channel, begun.attempt)
        ended = next(e for e in fate.steps if e.outcome and (e.channel, e.attempt) == number)
        yield {
            "fate": _name(fate), "channel": begun.channel, "number": begun.attempt,
            "provider": ended.provider, "started_s": begun.after, "finished_s": ended.after,
            "outcome": ended.outcome, "reason": ended.reason, "detail": ended.detail,
        }  # fmt: skip


TYPES: Final = {bool: "boolean", int: "integer", str: "text"}


def _write(connection: psycopg.Connection[Any], table: str, rows: list[dict[str, Any]]) -> None:
    """A table with a column for each name; what is always None is text."""
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_type(name, rows)))
        for name in rows[0]
    ]
    target = sql.Identifier(table)
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(target))
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(target, sql.SQL(", ").join(columns)))
    marks = sql.SQL(", ").join([sql.Placeholder()] * len(rows[0]))
    with connection.cursor() as cursor:
        cursor.executemany(
            sql.SQL("INSERT INTO {} VALUES ({})").format(target, marks),
            [list(each.values()) for each in rows],
        )
    connection.execute(sql.SQL("ANALYZE {}").format(target))


def _type(name: str, rows: list[dict[str, Any]]) -> str:
    """By the name where that tells, else by the first value that is there."""
    if name.endswith("_s"):
        return "float8"
    if name == "evidence":
        return "jsonb"
    return next((TYPES[type(row[name])] for row in rows if row[name] is not None), "text")
