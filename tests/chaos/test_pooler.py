"""Behind PgBouncer in transaction mode, where no session is one's own for two statements."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from notifier.store.database import Database
from peers.events import Event, build_event
from tests.chaos.conftest import Run, Surround
from tests.chaos.pooler import keep_session_settings, running_pooler
from tests.chaos.test_scheduler_rows import SWEEPS, finished
from tests.running import RunningApp, until

EVENTS = 60
SENDERS = 3


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    keep_session_settings(database_url)
    with running_pooler(database_url) as url:
        yield url


def post_all(app: RunningApp, events: list[Event]) -> None:
    with app.poster() as poster:
        for event in events:
            assert poster.post(event).status == 202


def test_p9_behind_a_transaction_pooler_everything_works_and_nothing_goes_twice(
    database_url: str, pooled_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    pooled = {"NOTIFIER_DATABASE_URL": pooled_url}
    apps = [run(around, name=name, more=pooled) for name in ("one", "two")]
    events = [build_event() for _ in range(EVENTS)]
    dying = build_event(fate="link:unavailable", life_s=4.0)
    in_doubt = build_event(fate="mail:drop-after-dot", life_s=30.0)
    for event in (dying, in_doubt):
        apps[0].admit(event)
    threads = [
        threading.Thread(target=post_all, args=(apps[n % 2], events[n::SENDERS]))
        for n in range(SENDERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for event in events:
        assert apps[0].settled(event["event_id"], within_s=60)["state"] == "complete"
    assert apps[1].settled(dying["event_id"])["state"] == "expired"
    assert apps[0].wait_for_email(in_doubt["event_id"], "unknown")["reason"] == "connection_lost"
    assert len(around.stored()) == EVENTS + 1
    assert max(Counter(around.stored()).values()) == 1
    assert_sweeps_lead_and_are_ready(apps)
    doctor = apps[0].flask("doctor").stdout
    assert "ok    session: through a pooler" in doctor


def assert_sweeps_lead_and_are_ready(apps: list[RunningApp]) -> None:
    """One leads, every sweep runs again and again, and no error of the pooler was met."""
    around = apps[0].around
    with around.connection() as connection:
        (now,) = connection.execute("SELECT db_now() AS now").fetchall()
    until(lambda: all(finished(around)[name] > now["now"] for name in SWEEPS), 20, "every sweep")
    leading = ["this process leads" in app.readiness()[1]["leader"][1] for app in apps]
    assert sorted(leading) == [False, True]
    for app in apps:
        until(lambda app=app: app.readiness()[0], 20, "both to be ready")  # type: ignore[misc]
        for trouble in ("PreparedStatement", "InvalidSqlStatementName", "UndefinedTable"):
            assert trouble not in app.log


def test_what_a_pooler_forgets_is_not_relied_on(database_url: str, pooled_url: str) -> None:
    behind, direct = Database(pooled_url), Database(database_url)
    with behind.connection() as pooled, direct.connection() as own:
        assert pooled.pooled
        assert pooled.prepare_threshold is None
        assert not own.pooled
        assert own.prepare_threshold is not None
    behind.close()
    direct.close()
