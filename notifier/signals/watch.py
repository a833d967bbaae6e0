"""The thread of each process that sees to it that somebody judges and somebody is told.

The `alert` sweep judges on the leader. This thread judges wherever nobody did for a period, so
that a hung scheduler, a frozen leader and dead workers are told by whoever still runs, also by a
process without workers. It stands on connections and time limits of its own. Where the database
itself cannot be reached, or the rules cannot be judged, it tells people straight away.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import psycopg

from notifier.clock import steady
from notifier.logs import fault_fields, log
from notifier.signals.deadman import EVERY_S as PING_EVERY_S
from notifier.signals.deadman import Deadman
from notifier.signals.judging import Judge
from notifier.signals.outage import Outage
from notifier.signals.paging import Outbox
from notifier.store import alerts
from notifier.store.alerts import WatchView
from notifier.store.database import Database, PooledConnection, StoreUnavailable

STATEMENT_TIMEOUT: Final = "-c statement_timeout=3s"
CONNECTIONS: Final = 3
"""One to judge on, and for what receivers answered."""
PASS_EVERY_S: Final = 1.0
ASKED_WITHIN_S: Final = 2.0
LATE_PERIODS: Final = 6
"""After so many periods without a judgement, or half a minute, all is not well."""
LATE_AT_LEAST_S: Final = 30.0
UNTOLD: Final = timedelta(minutes=2)


@dataclass
class Watch:
    """The watch of one process. `database` is its own (`watch_database`)."""

    database: Database
    judge: Judge
    outbox: Outbox
    unreachable: Outage
    unjudged: Outage
    deadman: Deadman | None = None
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _pinged_at: float | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin to watch, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="alert-watch", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Watch no more; what receivers are being told is left to end by itself."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        self.database.close()

    def pass_once(self) -> None:
        """Look once; never raises. What fails is what this is about."""
        try:
            view = self._look()
        except (StoreUnavailable, psycopg.OperationalError) as error:
            log.warning("watch_without_database", **fault_fields(error))
            self.unreachable.failing(self._hold_s())
            return
        except Exception as error:  # noqa: BLE001 - nothing may end the watch
            log.error("watch_failed", **fault_fields(error))
            self.unjudged.failing(self._hold_s())
            return
        self.unreachable.well()
        self._mind(view)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.pass_once()
            self._stop.wait(PASS_EVERY_S * random.uniform(0.8, 1.2))  # noqa: S311 - jitter

    def _look(self) -> WatchView | None:
        with self.database.connection(timeout=ASKED_WITHIN_S) as connection:
            try:
                self.judge.take_turn(connection)
            except psycopg.errors.QueryCanceled as error:
                # It answers, but not in time: the age of the last judgement tells of it.
                log.warning("rules_not_judged", **fault_fields(error))
            self.outbox.start_due(connection)
            self._ping_if_told(connection)
            return alerts.watch_view(connection)

    def _mind(self, view: WatchView | None) -> None:
        if view is not None and self._is_late(view):
            self.unjudged.failing(self._hold_s() - LATE_AT_LEAST_S)
        else:
            self.unjudged.well()

    def _is_late(self, view: WatchView) -> bool:
        if view.judged_s is None:
            return True
        return view.judged_s > max(LATE_PERIODS * self.judge.every_s, LATE_AT_LEAST_S)

    def _hold_s(self) -> float:
        return self.judge.limits().share_s("database_silent_share")

    def _ping_if_told(self, connection: PooledConnection) -> None:
        """Ping while the rules are judged and every page found somebody who took it."""
        if self.deadman is None:
            return
        now = steady()
        if self._pinged_at is not None and now - self._pinged_at < PING_EVERY_S:
            return
        view = alerts.watch_view(connection)
        if view is None or self._is_late(view) or alerts.somebody_untold(connection, UNTOLD):
            return
        self._pinged_at = now
        self.deadman.start()


def watch_database(url: str, search_path: str = "notifier") -> Database:
    """The connections of a watch, which nothing else can use up or hold."""
    return Database(
        url,
        size=CONNECTIONS,
        application_name="notifier-watch",
        search_path=search_path,
        extra_options=STATEMENT_TIMEOUT,
    )
