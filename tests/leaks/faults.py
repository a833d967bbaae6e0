"""A database that fails in the middle of every step, and quotes all it was given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg.rows import DictRow

from notifier.flow import halts
from notifier.store.database import Database
from peers.events import Event
from tests.database import rewriting
from tests.leaks.stage import PATIENCE_S, Stage
from tests.leaks.wire import Wire

Connection = psycopg.Connection[DictRow]

QUOTE_ALL = """
    CREATE FUNCTION quote_all() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'refused % in %', NEW, current_query()
            USING ERRCODE = 'check_violation', DETAIL = NEW::text;
    END $$
"""
LEFT = "left to its lease"
OPEN = ("queued", "claimed", "attempted", "standby")


@contextmanager
def changed(connection: Connection, there: str, back: str) -> Iterator[None]:
    """Another schema for a while."""
    connection.execute(there.encode())
    try:
        yield
    finally:
        connection.execute(back.encode())


@contextmanager
def refusing(connection: Connection, table: str, when: str) -> Iterator[None]:
    """The table refuses rows, quoting row and statement."""
    there = f"CREATE TRIGGER quoting BEFORE {when} ON {table} FOR EACH ROW EXECUTE FUNCTION"
    with changed(connection, f"{there} quote_all()", f"DROP TRIGGER quoting ON {table}"):
        yield


def fail_admissions(stage: Stage, connection: Connection) -> None:
    """Each kind of failed statement on a row about a canary; the sender hears 5xx and repeats."""
    event = stage.event("admission-fault", correlation_id="corr-canary")
    kinds = (
        ("ALTER TABLE contact ADD CHECK (mask = '') NOT VALID",
         "ALTER TABLE contact DROP CONSTRAINT contact_mask_check"),
        ("ALTER TABLE reset_event ALTER transport_id TYPE varchar(2) USING NULL",
         "ALTER TABLE reset_event ALTER transport_id TYPE text"),
        ("ALTER TABLE contact RENAME mask TO hidden", "ALTER TABLE contact RENAME hidden TO mask"),
        (f"CREATE UNIQUE INDEX once ON contact (mask) WHERE notice_id > '{newest(connection)}'",
         "DROP INDEX once"),
    )  # fmt: skip
    for there, back in kinds:
        with changed(connection, there, back):
            first = stage.post(stage.event("before-fault")) if "once" in there else None
            assert first is None or first.status == 202
            posted = stage.post(event)
            assert posted.status >= 500, (there, posted)
    with refusing(connection, "contact", "INSERT"):
        assert stage.post(event).status >= 500
    assert stage.post(event).status == 202


def newest(connection: Connection) -> str:
    row = connection.execute("SELECT notice_id FROM notice ORDER BY notice_id DESC LIMIT 1")
    found = row.fetchone()
    assert found is not None
    return str(found["notice_id"])


def fail_workers(stage: Stage, connection: Connection, machine: Wire) -> list[Event]:
    """The worker's own statements fail while link, destination and message are in its hands."""
    learning = stage.event("learning-fault")
    learning["destinations"] = {}
    before = said(stage, LEFT)
    with refusing(connection, "contact", "INSERT OR UPDATE"):
        assert stage.post(learning).status == 202
        stage.auth.wait_for(phase="asked", reset_request_id=learning["reset_request_id"])
        until(lambda: said(stage, LEFT) > before, "a worker that could not learn")
        before = said(stage, LEFT)
    starting = stage.event("intent-fault")
    with refusing(connection, "attempt", "INSERT"):
        assert stage.post(starting).status == 202
        stage.auth.wait_for(phase="asked", reset_request_id=starting["reset_request_id"])
        until(lambda: said(stage, LEFT) > before, "a worker that could not start")
    recording = stage.event("record-fault", mail="record-fault")
    with refusing(connection, "attempt", "UPDATE"):
        assert stage.post(recording).status == 202
        stage.inbox.wait_for(phase="final", recipient=stage.canaries.address("record-fault"))
        until(lambda: b"outcomes wait" in machine.get("/readyz").body, "an outcome that waits")
    return [learning, starting, recording, poison(stage, connection)]


def poison(stage: Stage, connection: Connection) -> Event:
    """A row on which the worker's own code fails, with the answer of the auth service in hand."""
    event = stage.event("poison")
    database = Database(stage.database_url, size=1)
    scope = f"event:{event['event_id']}"
    try:
        halts.engage(database, scope=scope, reason="test", by="test")
        assert stage.post(event).status == 202
        change = "UPDATE notice SET policy_revision = %s WHERE event_id = %s"
        with rewriting(connection, "notice"):
            connection.execute(change, [999, event["event_id"]])
        halts.release(database, scope=scope, reason="test", by="test")
        until(lambda: said(stage, "a delivery failed"), "a worker that failed on a row")
        with rewriting(connection, "notice"):
            connection.execute(change, [1, event["event_id"]])
    finally:
        database.close()
    return event


def settle(connection: Connection, events: list[Event]) -> dict[str, str]:
    """Wait until nothing is under way; the email's state by event id."""
    ids = [event["event_id"] for event in events]

    def states() -> dict[str, str]:
        rows = connection.execute(
            "SELECT event_id, d.state FROM notice JOIN delivery AS d USING (notice_id)"
            " WHERE channel = 'email' AND event_id = ANY(%s)", [ids],
        )  # fmt: skip
        return {row["event_id"]: row["state"] for row in rows}

    until(lambda: not set(states().values()) & set(OPEN), "a quiet queue", states)
    found = states()
    assert found.keys() == set(ids)
    return found


def until(true: Callable[[], object], what: str, tell: Callable[[], object] = str) -> None:
    """Wait for what the database or the log will show."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"{what} did not come: {tell()}"
        time.sleep(0.05)


def said(stage: Stage, words: str) -> int:
    """How often the application's log has these words."""
    return sum(path.read_text().count(words) for path in (stage.folder / "logs").iterdir())
