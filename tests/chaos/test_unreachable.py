"""Connections that all wait, and connections behind which nobody is any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from notifier.serving import REQUESTS_AT_ONCE
from notifier.store.database import ANSWER_LIMIT_S, SESSION_LIMITS
from peers.events import Event, Posted, Poster, build_event
from tests.chaos.conftest import Run, Surround
from tests.running import SHORT_TIMES, RunningApp, Surroundings, until
from tests.sweeps.test_wakeup import MuteableProxy

PATIENT = SHORT_TIMES.replace("email = 1.5", "email = 20.0")
POSTS = 2 * REQUESTS_AT_ONCE
"""As many as may work at once, and as many again that wait for a place."""


@contextmanager
def admissions_locked(around: Surroundings) -> Iterator[None]:
    """Nobody can admit: each tries for as long as a lock may be waited for."""
    with around.connection() as connection, connection.transaction():
        connection.execute("LOCK TABLE admission IN EXCLUSIVE MODE")
        yield


def waiting(around: Surroundings) -> int:
    return len(
        around.rows(
            "SELECT FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'notifier-web' AND wait_event_type = 'Lock'"
        )
    )


def post_patiently(app: RunningApp) -> Posted:
    """Post an event and wait out every queue."""
    with Poster(app.base_url, app.around.secrets.ingest, timeout_s=60) as poster:
        return poster.post(build_event())


def test_p2_while_every_request_waits_for_the_database_health_is_told_and_the_rest_refused(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    app = run(around)
    answers: list[Posted] = []
    threads = [
        threading.Thread(target=lambda: answers.append(post_patiently(app))) for _ in range(POSTS)
    ]
    with admissions_locked(around):
        for thread in threads:
            thread.start()
        until(lambda: waiting(around) == REQUESTS_AT_ONCE, 4, "every place to be taken")
        assert app.serves()
        assert app.readiness()[1]["database"][0], "the database itself is well"
        assert len(answers) <= REQUESTS_AT_ONCE, "readiness waited for its turn behind the others"
        for thread in threads:
            thread.join()

    assert {answer.status for answer in answers} == {503}
    assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)
    after = build_event()
    assert app.settled(app.admit(after))["state"] == "complete"
    assert len(around.stored()) == 1, "a refused event was sent"


@pytest.fixture
def proxy(database_url: str) -> Iterator[MuteableProxy]:
    given = conninfo_to_dict(database_url)
    made = MuteableProxy(Path(str(given["host"])) / f".s.PGSQL.{given['port']}")
    yield made
    made.close()


def through(proxy: MuteableProxy, database_url: str) -> str:
    given = conninfo_to_dict(database_url)
    where = urlencode({"passfile": given["passfile"]}, quote_via=quote)
    return f"postgresql://{given['user']}@127.0.0.1:{proxy.port}/{given['dbname']}?{where}"


def post_until_admitted(app: RunningApp, event: Event) -> list[int]:
    """What the sender is told, again and again, the last time that it is admitted."""
    told: list[int] = []
    with app.poster() as poster:
        while not told or told[-1] != 202:
            assert len(told) < 100, told
            told.append(poster.post(event).status)
    return told


def test_p3_lines_whose_peer_vanished_are_given_up_in_bounded_time(
    proxy: MuteableProxy,
    database_url: str,
    surround: Surround,
    run: Run,
    record_property: Callable[[str, object], None],
) -> None:
    around = surround(database_url, policy=PATIENT)
    app = run(around, more={"NOTIFIER_DATABASE_URL": through(proxy, database_url)})
    calling = build_event(fate="mail:hold")
    app.admit(calling)
    around.inbox.wait_for(phase="held", recipient=calling["destinations"]["email"])

    proxy.mute_present_lines()
    muted_at = time.monotonic()
    around.inbox.release()  # its outcome is written into a line that leads nowhere
    assert app.serves()
    ready, parts = app.readiness()
    assert not ready
    assert parts["database"][0] is False, parts
    event = build_event()
    assert set(post_until_admitted(app, event)) <= {202, 503}

    for each in (calling, event):
        assert app.settled(each["event_id"], within_s=40)["state"] == "complete"
        assert len(around.mails(each)) == 1
        assert len(app.email(each["event_id"])["attempts"]) == 1
    until(lambda: app.readiness()[0], 60, lambda: f"ready: {app.readiness()[1]}")
    record_property("ready_after_s", round(time.monotonic() - muted_at, 1))


def test_no_answer_is_awaited_for_longer_than_the_server_itself_takes() -> None:
    assert float(SESSION_LIMITS["statement_timeout"].removesuffix("s")) < ANSWER_LIMIT_S
