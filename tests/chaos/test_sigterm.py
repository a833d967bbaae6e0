"""SIGTERM with work in hand: it ends or goes back, and no promise is broken on the way."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import uuid

from notifier.serving import REQUESTS_AT_ONCE
from peers.app_process import ROOT
from peers.events import Event, build_event
from tests.chaos.conftest import Run, Surround
from tests.running import SHORT_TIMES, RunningApp, until

PATIENT = SHORT_TIMES.replace("email = 1.5", "email = 10.0")
ADMISSIONS = CALLBACKS = 20
CALLBACK_PASSWORD = "a-password-of-the-callbacks-alone"
DELIVERED_AT = "2026-11-29T12:00:00Z"
POSTMARK_TOO = {
    "NOTIFIER_EMAIL_PROVIDERS": "smtp,postmark",
    "NOTIFIER_POSTMARK_TOKEN": "a-token-of-nobody",
    "NOTIFIER_POSTMARK_CALLBACK_PASSWORD": CALLBACK_PASSWORD,
}


def test_work_in_hand_is_finished_or_handed_back(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url, policy=PATIENT)
    app = run(around)
    calling = build_event(fate="mail:hold")
    linking = build_event(fate="link:hold")
    for event in (calling, linking):
        app.admit(event)
    around.inbox.wait_for(phase="held", recipient=calling["destinations"]["email"])
    around.auth.wait_for(phase="held", event_id=linking["event_id"])

    app.signal(signal.SIGTERM)
    until(lambda: not app.serves(), 10, "it to stop serving")
    around.inbox.release()
    around.auth.script(reset_request_id=linking["reset_request_id"])
    around.auth.release()
    app.wait_until_gone()
    assert app.exit_status == 0

    leases = around.rows("SELECT state FROM delivery WHERE lease_owner IS NOT NULL")
    assert leases == [], "something was left to its lease"
    app.start()
    app.wait_until_ready()
    for event in (calling, linking):
        assert app.settled(event["event_id"])["state"] == "complete"
        assert len(around.mails(event)) == 1
        assert len(app.email(event["event_id"])["attempts"]) == 1


def post_once(app: RunningApp, event: Event, told: dict[str, int | None]) -> None:
    try:
        told[event["event_id"]] = app.post(event).status
    except (OSError, http.client.HTTPException):
        told[event["event_id"]] = None


def test_p2_admissions_in_flight_are_answered_or_can_be_repeated(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    app = run(around)
    events = [build_event() for _ in range(ADMISSIONS)]
    told: dict[str, int | None] = {}
    threads = [threading.Thread(target=post_once, args=(app, event, told)) for event in events]
    with around.connection() as connection, connection.transaction():
        connection.execute("LOCK TABLE admission IN EXCLUSIVE MODE")
        for thread in threads:
            thread.start()
        until(
            lambda: waiting_requests(app) >= REQUESTS_AT_ONCE,
            10,
            "admissions to wait for the table",
        )
        app.signal(signal.SIGTERM)
        until(lambda: stopping(app), 4, "the process to have heard the stop")
    for thread in threads:
        thread.join()
    app.wait_until_gone()

    assert set(told.values()) <= {202, 503, None}
    stored = {row["event_id"] for row in around.rows("SELECT event_id FROM admission")}
    acknowledged = {event_id for event_id, status in told.items() if status == 202}
    assert acknowledged <= stored
    assert len(acknowledged) >= REQUESTS_AT_ONCE, f"requests that were taken were cut: {told}"
    app.start()
    app.wait_until_ready()
    for event in events:  # whoever got no answer asks again
        assert app.settled(app.admit(event))["state"] == "complete"
    assert sorted(around.stored()) == sorted(e["destinations"]["email"] for e in events)


def tell_once(app: RunningApp, message_id: str, told: dict[str, int | None]) -> None:
    """Bring one callback, as a provider does."""
    said = {"RecordType": "Delivery", "MessageID": message_id, "DeliveredAt": DELIVERED_AT}
    basic = base64.b64encode(f"postmark:{CALLBACK_PASSWORD}".encode()).decode()
    headers = {"content-type": "application/json", "authorization": f"Basic {basic}"}
    line = http.client.HTTPConnection("127.0.0.1", app.port, timeout=30)
    try:
        line.request("POST", "/callbacks/postmark/", json.dumps({**said, "Metadata": {}}), headers)
        told[message_id] = line.getresponse().status
    except (OSError, http.client.HTTPException):
        told[message_id] = None
    finally:
        line.close()


def test_p2_callbacks_in_flight_are_answered_or_can_be_told_again(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    app = run(around, more=POSTMARK_TOO)
    messages = [str(uuid.uuid4()) for _ in range(CALLBACKS)]
    told: dict[str, int | None] = {}
    threads = [threading.Thread(target=tell_once, args=(app, each, told)) for each in messages]
    with around.connection() as connection, connection.transaction():
        connection.execute("LOCK TABLE receipt IN EXCLUSIVE MODE")
        for thread in threads:
            thread.start()
        until(lambda: waiting_requests(app) >= REQUESTS_AT_ONCE, 10, "callbacks to wait")
        app.signal(signal.SIGTERM)
        until(lambda: stopping(app), 4, "the process to have heard the stop")
    for thread in threads:
        thread.join()
    app.wait_until_gone()

    assert set(told.values()) <= {204, 503, None}
    answered = [each for each, status in told.items() if status == 204]
    assert len(answered) <= len(around.rows("SELECT FROM receipt"))
    app.start()
    app.wait_until_ready()
    for message_id in messages:  # a provider tells again until it is heard
        tell_once(app, message_id, told)
    assert set(told.values()) == {204}
    assert len(around.rows("SELECT FROM receipt")) == CALLBACKS


def stopping(app: RunningApp) -> bool:
    """Whether nobody takes a new connection any more."""
    try:
        socket.create_connection(("127.0.0.1", app.port), 1).close()
    except OSError:
        return True
    return False


def waiting_requests(app: RunningApp) -> int:
    return len(
        app.around.rows(
            "SELECT FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'notifier-web' AND wait_event_type = 'Lock'"
        )
    )


def test_no_thread_of_the_process_can_take_a_stop_away() -> None:
    """Without `hear_signals` a third of these stops is lost."""
    command = [sys.executable, "-m", "tests.chaos.stopping_process"]
    for _ in range(8):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.terminate()
            try:
                assert process.wait(10) == 0
            finally:
                process.kill()
