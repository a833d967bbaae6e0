"""The mail is out, and the database will not take what became of it."""

from __future__ import annotations

import signal

from peers.events import build_event
from tests.chaos.conftest import Run, Surround
from tests.running import Surroundings, until

REFUSE = """
    CREATE SEQUENCE public.refusals;
    CREATE TABLE public.refusing (one boolean);
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM public.refusing) THEN
            PERFORM nextval('public.refusals');
            RAISE EXCEPTION 'not now' USING ERRCODE = '40001';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON notifier.attempt
        FOR EACH ROW EXECUTE FUNCTION public.refuse();
    INSERT INTO public.refusing VALUES (true);
"""
"""While a row stands in `refusing`, no outcome can be written (serialization failure)."""


def refused(around: Surroundings) -> int:
    (row,) = around.rows("SELECT last_value, is_called FROM public.refusals")
    return int(row["last_value"]) if row["is_called"] else 0


def test_p3_an_outcome_that_cannot_be_written_is_kept_and_nothing_is_sent_again(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    app = run(around)
    with around.connection() as connection:
        connection.execute(REFUSE)
        event, later = build_event(), build_event()
        app.admit(event)
        until(lambda: refused(around) >= 3, 15, "three refusals")

        ready, parts = app.readiness()
        assert not ready
        assert parts["outcomes"][0] is False
        assert "1 outcomes wait" in parts["outcomes"][1]
        app.admit(later)  # nothing new is claimed meanwhile
        until(lambda: refused(around) >= 6, 15, "three more refusals")
        assert app.email(later["event_id"])["state"] == "queued"
        assert app.email(event["event_id"])["state"] == "attempted"
        connection.execute("DELETE FROM public.refusing")

    for each in (event, later):
        assert app.settled(each["event_id"])["state"] == "complete"
        (attempt,) = app.email(each["event_id"])["attempts"]
        assert attempt["outcome"] == "accepted"
        assert len(around.mails(each)) == 1
    until(lambda: app.readiness()[0], 15, lambda: f"ready: {app.readiness()[1]}")


def test_p3_an_outcome_that_is_never_written_is_unknown(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    app = run(around)
    with around.connection() as connection:
        connection.execute(REFUSE)
        event = build_event()
        app.admit(event)
        until(lambda: refused(around) >= 2, 15, "two refusals")
        app.signal(signal.SIGKILL, group=True)
        app.wait_until_gone()
        connection.execute("DELETE FROM public.refusing")

    app.start()
    app.wait_until_ready()
    email = app.wait_for_email(event["event_id"], "unknown", within_s=40)
    assert email["reason"] == "worker_lost"
    assert len(email["attempts"]) == 1
    assert len(around.mails(event)) == 1


def test_p3_connections_cut_while_the_outcome_is_written_cost_nothing(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    app = run(around)
    event = build_event(fate="mail:hold")
    app.admit(event)
    around.inbox.wait_for(phase="held")
    with around.locked(event):
        around.inbox.release()
        until(lambda: around.waiting_for_locks() >= 1, 5, "the outcome to wait for its row")
        cut = around.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database()"
            " AND application_name IN ('notifier-web', 'notifier-work')"
        )
        assert cut

    assert app.settled(event["event_id"])["state"] == "complete"
    assert len(around.mails(event)) == 1
    after = build_event()
    assert app.settled(app.admit(after))["state"] == "complete"
    until(lambda: app.readiness()[0], 20, lambda: f"ready: {app.readiness()[1]}")
