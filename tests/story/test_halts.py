"""An operator stops sending: at once, by scope, with a list of what is still in flight."""

from __future__ import annotations

import threading
from contextlib import closing

from notifier.flow import halts
from notifier.store.database import Database
from peers.events import build_event
from tests.running import SHORT_TIMES, RunningApp, Surroundings, until
from tests.story.conftest import StartAlone

PATIENT = SHORT_TIMES.replace("email = 1.5", "email = 60.0")


def test_p10_a_halt_holds_what_is_queued_and_its_release_lets_the_living_go(
    app: RunningApp, around: Surroundings
) -> None:
    account = "acc-halted"
    done = app.flask("halt", f"account:{account}", "--reason", "the text is wrong")
    assert done.returncode == 0, done.stderr
    assert "in effect: nothing is in flight" in done.stdout

    living = [build_event(account_id=account) for _ in range(3)]
    dying = build_event(account_id=account, life_s=2.5)
    other = build_event()
    for event in (*living, dying, other):
        app.admit(event)

    assert app.settled(other["event_id"])["state"] == "complete"
    told = app.status(living[0]["event_id"])
    assert (told["support_word"], told["on_hold"]) == ("on hold", True)
    assert "on hold" in told["headline"]
    assert app.settled(dying["event_id"])["state"] == "expired"
    assert all(around.mails(event) == [] for event in (*living, dying))

    done = app.flask("release", f"account:{account}", "--reason", "mended")
    assert done.returncode == 0, done.stderr
    for event in living:
        assert app.settled(event["event_id"])["state"] == "complete"
        assert len(around.mails(event)) == 1
    assert around.mails(dying) == []


def test_p10_claimed_work_under_a_halt_goes_back_and_nothing_starts(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event(fate="link:hold")
    scope = f"event:{app.admit(event)}"
    (held,) = around.auth.wait_for(phase="held", event_id=event["event_id"])
    with closing(Database(around.database_url, size=1)) as database:
        told = halts.engage(database, scope=scope, reason="a test", by="test")
        assert [(each.event_id, each.state) for each in told.in_flight] == [
            (event["event_id"], "claimed")
        ]
        around.auth.release(int(str(held["id"])))

        app.wait_for_email(event["event_id"], "queued")
        assert app.email(event["event_id"])["reason"] == "halted"
        assert around.mails(event) == []

        around.auth.script(reset_request_id=event["reset_request_id"])
        assert halts.release(database, scope=scope, reason="over", by="test")
    assert app.settled(event["event_id"])["state"] == "complete"
    assert len(around.mails(event)) == 1


def test_p10_the_acknowledgement_lists_what_is_in_flight(start_alone: StartAlone) -> None:
    app = start_alone(policy=PATIENT)
    event, waiting = build_event(fate="mail:hold"), build_event()
    app.admit(event)
    app.around.inbox.wait_for(phase="held", recipient=event["destinations"]["email"])
    (attempt,) = app.email(event["event_id"])["attempts"]

    done = app.flask("halt", "all", "--reason", "wrong links")
    app.admit(waiting)

    assert "1 still in flight" in done.stdout
    assert event["event_id"] in done.stdout
    assert attempt["reference"] in done.stdout
    app.around.inbox.release()
    assert app.settled(event["event_id"])["state"] == "complete"
    listed = app.flask("halts").stdout
    assert "wrong links" in listed
    assert "in effect" in listed
    assert app.status(waiting["event_id"])["support_word"] == "on hold"
    assert app.around.mails(waiting) == []


def test_p10_no_start_follows_the_acknowledgement_of_a_racing_halt(
    start_alone: StartAlone,
) -> None:
    app = start_alone()
    around, events = app.around, [build_event() for _ in range(100)]
    posting = threading.Thread(target=lambda: [app.admit(event) for event in events])
    posting.start()
    around.inbox.wait_for(count=20, phase="stored")

    with closing(Database(around.database_url, size=1)) as database:
        told = halts.engage(database, scope="all", reason="race", by="test")
        at_once = around.rows("SELECT reference, resolved_at FROM attempt")
        listed = {each.reference for each in told.in_flight if each.reference}
        posting.join()
        until(lambda: not halts.standing(database)[0].in_flight, 10, "the halt to be in effect")

        started = {row["reference"] for row in at_once}
        open_then = {row["reference"] for row in at_once if row["resolved_at"] is None}
        after = {row["reference"] for row in around.rows("SELECT reference FROM attempt")}
        assert after == started
        assert open_then <= listed
        assert 20 <= len(started) < 100
        sent = {entry["reference"] for entry in around.inbox.journal(phase="stored")}
        assert sent <= started

        assert halts.release(database, scope="all", reason="over", by="test")
    for event in events:
        assert app.settled(event["event_id"])["state"] == "complete"
    assert sorted(around.stored()) == sorted(e["destinations"]["email"] for e in events)
