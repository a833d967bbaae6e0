"""Tells people: the text of a page, and the outbox from which each receiver is told once.

A page is a row for each receiver until it is taken, so that it survives any process. Receivers
are told apart from each other, each in a thread of its own: a dead one delays nobody. Between
the taking and its being written down a crash can have a page sent twice.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

import psycopg

from notifier.logs import fault_fields, log
from notifier.ports.paging import Page, Receiver, Urgency
from notifier.signals.judgements import RuleName
from notifier.signals.rule_words import (
    TITLES,
    affected_of,
    amount,
    page_of,
    runbook_of,
    value_of,
)
from notifier.store import alerts
from notifier.store.alerts import PageDue
from notifier.store.database import Database, PooledConnection, StoreUnavailable

LEASE: Final = timedelta(seconds=60)
"""How long a page that is being sent is left to whoever sends it."""
WAITS_S: Final = (5.0, 15.0, 60.0, 300.0)
"""Between the tries for one receiver; the last repeats."""
GIVE_UP_AFTER: Final = timedelta(hours=24)


def opened_page(base: str, episode: dict[str, Any]) -> Page:
    """What is told when an episode opens; `base` is the product's public address."""
    rule, unit = episode["rule"], episode["unit"]
    title = _title(rule, episode["key"])
    lines = [
        f"{title}: {_worst(episode)}, limit {amount(episode['threshold'], unit)}.",
        f"Above the limit since {_moment(episode['crossed_at'])}.",
        f"Affected: {_affected(episode)}.",
        f"See: {base}{page_of(rule, episode['key'])}",
        f"Runbook: {base}{runbook_of(rule)}",
        f"Take it in hand: {base}/alerts/{episode['episode_id']}",
    ]
    return Page(title, "\n".join(lines), Urgency.TROUBLE)


def resolved_page(base: str, episode: dict[str, Any]) -> Page:
    """What is told when it has ended."""
    rule, unit = episode["rule"], episode["unit"]
    title = f"Over: {_title(rule, episode['key'])}"
    lines = [
        f"{title}.",
        f"Worst: {_worst(episode)}, limit {amount(episode['threshold'], unit)}.",
        f"Above it from {_moment(episode['crossed_at'])} to {_moment(_until(episode))}.",
        f"Affected: {_affected(episode)}.",
        f"See: {base}{page_of(rule, episode['key'])}",
    ]
    return Page(title, "\n".join(lines), Urgency.OVER)


def own_page(base: str, rule: RuleName, since: datetime, *, over: bool, where: str) -> Page:
    """What a process tells by itself, without a row; `where` names the process."""
    title = f"Over: {TITLES[rule]}" if over else TITLES[rule]
    lines = [
        f"{title}, seen by {where}.",
        f"Since {_moment(since)} by that host's clock.",
        f"See: {base}{page_of(rule, '')}",
        f"Runbook: {base}{runbook_of(rule)}",
    ]
    return Page(title, "\n".join(lines), Urgency.OVER if over else Urgency.TROUBLE)


@dataclass
class Outbox:
    """Sends the pages that are due to these receivers; several processes may."""

    database: Database
    receivers: Sequence[Receiver]
    base: str
    _busy: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def names(self) -> list[str]:
        """The receivers as their pages name them."""
        return [each.name for each in self.receivers]

    def start_due(self, connection: PooledConnection) -> list[threading.Thread]:
        """Claim what is due and send it, a thread a receiver; returns at once."""
        with self._lock:
            free = [each for each in self.names if each not in self._busy]
        if not free:
            return []
        due = alerts.claim_pages(connection, free, lease=LEASE)
        by_name = {each.name: each for each in self.receivers}
        ordered = sorted(due, key=lambda each: each.receiver)
        return [
            self._spawn(by_name[name], list(pages))
            for name, pages in groupby(ordered, key=lambda each: each.receiver)
        ]

    def _spawn(self, receiver: Receiver, pages: list[PageDue]) -> threading.Thread:
        with self._lock:
            self._busy.add(receiver.name)
        thread = threading.Thread(
            target=self._send, args=(receiver, pages), name="paging", daemon=True
        )
        thread.start()
        return thread

    def _send(self, receiver: Receiver, pages: list[PageDue]) -> None:
        try:
            for due in pages:
                self._send_one(receiver, due)
        finally:
            with self._lock:
                self._busy.discard(receiver.name)

    def _send_one(self, receiver: Receiver, due: PageDue) -> None:
        make = opened_page if due.kind == "opened" else resolved_page
        trouble = receiver.take(make(self.base, due.episode))
        if trouble:
            log.warning("page_not_taken", code=trouble, attempt=due.tries)
        try:
            with self.database.connection(timeout=2.0) as connection:
                _write(connection, due, trouble)
        except (StoreUnavailable, psycopg.Error) as error:
            # The page's lease runs out, and it is sent again.
            log.warning("page_not_written", **fault_fields(error))


def _write(connection: PooledConnection, due: PageDue, trouble: str | None) -> None:
    if trouble is None:
        alerts.page_sent(connection, due)
        return
    wait = timedelta(seconds=WAITS_S[min(due.tries, len(WAITS_S)) - 1])
    over = due.now - due.made_at > GIVE_UP_AFTER
    alerts.page_not_sent(connection, due, trouble=trouble, wait=None if over else wait)


def _worst(episode: dict[str, Any]) -> str:
    return value_of(episode["rule"], episode["worst"], episode["unit"], episode["detail"])


def _until(episode: dict[str, Any]) -> datetime:
    """When it was over, which is told after it has stayed so for a while."""
    over: datetime = episode["clear_since"] or episode["resolved_at"]
    return over


def _affected(episode: dict[str, Any]) -> str:
    return affected_of(episode["rule"], episode["affected"])


def _title(rule: str, key: str) -> str:
    title = TITLES[RuleName(rule)]
    return f"{title} ({key})" if key else title


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
