"""The primary dies, the standby takes over: nothing acknowledged is lost, nothing goes twice."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import psycopg
import pytest

from notifier.domain.event import ResetEvent
from notifier.store.database import Database, StoreConnectionLost
from peers.events import Event, build_event
from tests.chaos.conftest import Run, Surround
from tests.chaos.replicas import Pair, running_pair
from tests.chaos.test_scheduler_rows import SWEEPS, finished
from tests.db.rig import Rig
from tests.running import SHORT_TIMES, RunningApp, until

PATIENT = SHORT_TIMES.replace("email = 1.5", "email = 12.0")
BEFORE, AFTER = 40, 20
"""Events that are acknowledged on the first primary and, at least, on the second."""
BACK_WITHIN_S = 15.0
HELD = 3
SENDERS = 4


@pytest.fixture
def pair() -> Iterator[Pair]:
    with running_pair() as both:
        yield both


class Senders:
    """Threads that post fresh events, each once, until told to stop."""

    def __init__(self, app: RunningApp) -> None:
        self._app = app
        self._stop = threading.Event()
        self.events: list[Event] = []
        self.told: dict[str, int | None] = {}
        self.acknowledged_at: list[float] = []
        self._threads = [threading.Thread(target=self._post) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def _post(self) -> None:
        while not self._stop.is_set():
            event = build_event()
            self.events.append(event)
            try:
                status: int | None = self._app.post(event).status
            except (OSError, http.client.HTTPException):
                status = None
            self.told[event["event_id"]] = status
            if status == 202:
                self.acknowledged_at.append(time.monotonic())
            self._stop.wait(0.02)

    def acknowledged(self) -> set[str]:
        return {event_id for event_id, status in self.told.items() if status == 202}

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def sessions_on(url: str) -> list[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT query FROM pg_stat_activity WHERE application_name LIKE 'notifier%'"
        ).fetchall()
    return [str(row[0]) for row in rows]


def fail_over(app: RunningApp, pair: Pair, senders: Senders) -> float:
    """Kill the primary and promote the standby; seconds from the kill to readiness."""
    until(lambda: len(senders.acknowledged()) >= BEFORE, 60, "events before the failover")
    killed_at = time.monotonic()
    pair.kill_primary()
    app.around.inbox.release()  # the answers come while nobody takes writes
    pair.promote()
    until(
        lambda: sum(at > killed_at for at in senders.acknowledged_at) >= AFTER,
        60,
        lambda: f"events after the failover: {app.readiness()}\n{app.log[-4000:]}",
    )
    until(lambda: app.readiness()[0], 60, lambda: f"ready: {app.readiness()[1]}")
    return time.monotonic() - killed_at


def test_p2_p9_a_failover_loses_nothing_acknowledged_and_doubles_nothing(
    pair: Pair, surround: Surround, run: Run, record_property: Callable[[str, object], None]
) -> None:
    around = surround(pair.url, policy=PATIENT)
    app = run(around)
    with pair.durable():
        assert "synchronous replication on" in app.flask("doctor").stdout
    until(lambda: not sessions_on(pair.standby_url), 10, "nobody to work on the standby")
    in_flight = [build_event(fate="mail:hold") for _ in range(HELD)]
    for event in in_flight:
        app.admit(event)
    around.inbox.wait_for(count=HELD, phase="held")

    senders = Senders(app)
    try:
        back_after_s = fail_over(app, pair, senders)
    finally:
        senders.stop()

    record_property("back_after_s", round(back_after_s, 1))
    assert back_after_s < BACK_WITHIN_S
    counts = Counter(senders.told.values())
    assert set(counts) <= {202, 503, None}, counts
    assert_everything_recovered(app, pair)
    admitted = {row["event_id"] for row in around.rows("SELECT event_id FROM admission")}
    assert senders.acknowledged() <= admitted
    assert_sent_once(app, in_flight, senders)


def assert_everything_recovered(app: RunningApp, pair: Pair) -> None:
    """Sweeps run on the new primary, under a lease, with somebody listening."""
    around = app.around
    with around.connection() as connection:
        (now,) = connection.execute("SELECT db_now() AS now").fetchall()
    until(
        lambda: all(finished(around)[name] > now["now"] for name in SWEEPS),
        20,
        "every sweep to run on the new primary",
    )
    assert "this process leads" in app.readiness()[1]["leader"][1]
    until(
        lambda: any("notifier_work" in query for query in sessions_on(pair.standby_url)),
        10,
        lambda: f"somebody to listen: {sessions_on(pair.standby_url)}",
    )


def assert_sent_once(app: RunningApp, in_flight: list[Event], senders: Senders) -> None:
    """What was under way has one message; so has the rest, once its senders ask again."""
    for event in in_flight:
        email = app.wait_for_email(event["event_id"], "accepted", "unknown")
        assert len(email["attempts"]) == 1
        assert len(app.around.mails(event)) == 1
    for event in senders.events:
        if senders.told[event["event_id"]] != 202:
            app.admit(event)
    for event in senders.events:
        email = app.wait_for_email(event["event_id"], "accepted", "unknown", within_s=40)
        assert len(app.around.mails(event)) == 1 or email["state"] == "unknown"
    assert max(Counter(app.around.stored()).values()) == 1


def admit_unconfirmed(rig: Rig, event: ResetEvent, pair: Pair) -> str:
    """What an admission came to whose wait for the standby an operator broke off."""
    told: list[str] = []

    def admit() -> None:
        try:
            rig.admit(event)
        except StoreConnectionLost as error:
            told.append(str(error))
        else:
            told.append("acknowledged")

    thread = threading.Thread(target=admit)
    thread.start()
    with psycopg.connect(pair.primary_url, autocommit=True) as operator:
        until(
            lambda: operator.execute(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            ).fetchall(),
            10,
            "the commit to wait for the standby",
        )
    thread.join()
    return told[0]


def test_p2_what_no_standby_confirmed_is_acknowledged_neither_at_first_nor_when_repeated(
    pair: Pair,
) -> None:
    database = Database(pair.url)
    rig = Rig(database)
    event = rig.event()
    pair.stop_standby()

    first = admit_unconfirmed(rig, event, pair)
    assert rig.count("admission") == 1, "it is visible by now, and still could be lost"
    repeated = admit_unconfirmed(rig, event, pair)

    assert {first, repeated} == {"no standby has confirmed the commit"}
    pair.start_standby()
    rig.admit(event)
    database.close()
    with psycopg.connect(pair.standby_url) as standby:
        assert standby.execute("SELECT count(*) FROM notifier.admission").fetchone() == (1,)
