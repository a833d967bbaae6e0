"""Two processes on one database, with and without a death among them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence

from peers.events import Event, build_event
from tests.chaos.conftest import Run, Surround
from tests.running import SHORT_TIMES, RunningApp, until

EVENTS = 200
PATIENT = SHORT_TIMES.replace("email = 1.5", "email = 10.0")
PAST_THE_LEASE_S = 7.0
"""Longer than the lease of a claim and the grace of rescue together."""


def post_all(app: RunningApp, events: Sequence[Event]) -> None:
    with app.poster() as poster:
        for event in events:
            assert poster.post(event).status == 202


def posting(app: RunningApp, events: Sequence[Event]) -> threading.Thread:
    thread = threading.Thread(target=post_all, args=(app, events))
    thread.start()
    return thread


def test_p9_two_processes_send_each_of_200_mails_once(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    apps = [run(around, name=name) for name in ("one", "two")]
    events = [build_event() for _ in range(EVENTS)]

    threads = [posting(app, events[half::2]) for half, app in enumerate(apps)]
    for thread in threads:
        thread.join()
    until(
        lambda: not around.rows("SELECT FROM notice WHERE state <> 'complete'"),
        60,
        "every notice to be complete",
    )

    assert sorted(around.stored()) == sorted(e["destinations"]["email"] for e in events)
    (counts,) = around.rows(
        "SELECT count(*) AS attempts, count(DISTINCT notice_id) AS notices,"
        " count(DISTINCT owner) AS owners FROM attempt"
    )
    assert (counts["attempts"], counts["notices"], counts["owners"]) == (EVENTS, EVENTS, 2)


def test_p9_the_work_of_a_killed_leader_is_taken_over(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    leader = run(around, name="leader")
    other = run(around, name="other")
    assert "this process leads" in leader.readiness()[1]["leader"][1]
    events = [build_event(fate="mail:slow" if n % 4 == 0 else "") for n in range(60)]

    thread = posting(other, events)
    around.inbox.wait_for(count=10, phase="stored")
    leader.signal(signal.SIGKILL)
    thread.join()
    leader.wait_until_gone()

    ended = {"accepted", "unknown"}
    for event in events:
        other.wait_for_email(event["event_id"], *ended, within_s=40)
    for event in events:
        email = other.email(event["event_id"])
        mails = len(around.mails(event))
        if email["state"] == "accepted":
            assert mails == 1
        else:
            assert email["reason"] in {"worker_lost", "timeout"}
            assert mails <= 1
        assert len(email["attempts"]) == 1
    until(lambda: "this process leads" in other.readiness()[1]["leader"][1], 20, "a new leader")
    until(lambda: other.readiness()[0], 10, lambda: str(other.readiness()[1]))


def test_p9_a_call_that_takes_longer_than_a_lease_is_left_to_its_holder(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url, policy=PATIENT)
    one, _ = run(around, name="one"), run(around, name="two")
    event = build_event(fate="mail:hold")
    one.admit(event)
    around.inbox.wait_for(phase="held", recipient=event["destinations"]["email"])

    until(
        lambda: around.rows(
            "SELECT FROM attempt WHERE started_at < db_now() - make_interval(secs => %s)",
            PAST_THE_LEASE_S,
        ),
        20,
        "the call to be older than a lease",
    )
    assert one.email(event["event_id"])["state"] == "attempted"
    around.inbox.release()

    assert one.settled(event["event_id"])["state"] == "complete"
    assert one.reasons(event["event_id"])[-2:] == ["attempt_started", "provider_accepted"]
    assert len(around.mails(event)) == 1
