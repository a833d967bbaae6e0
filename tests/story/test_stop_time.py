"""Nothing starts after the latest useful moment, whatever kept it from starting earlier."""

from __future__ import annotations

from datetime import datetime

from peers.events import Event, build_event
from tests.running import RunningApp, Surroundings, until


def stop_of(app: RunningApp, event: Event) -> datetime:
    return datetime.fromisoformat(app.status(event["event_id"])["stop_at"])


def test_p5_without_a_link_until_the_stop_time_it_expires_unsent(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event(fate="link:unavailable", life_s=4.0)
    app.admit(event)
    stop_at = stop_of(app, event)

    told = app.settled(event["event_id"])

    assert (told["state"], told["support_word"]) == ("expired", "expired")
    email = app.email(event["event_id"])
    assert (email["state"], email["reason"]) == ("expired", "too_close_to_expiry")
    assert email["attempts"] == []
    reasons = app.reasons(event["event_id"])
    assert reasons.count("link_unavailable") >= 2
    asked = around.auth.journal(reset_request_id=event["reset_request_id"])
    assert len(asked) == reasons.count("link_unavailable")
    assert all(datetime.fromisoformat(str(entry["at"])) < stop_at for entry in asked)
    assert around.inbox.journal(recipient=event["destinations"]["email"]) == []
    assert "new" in told["customer_action"]


def test_p5_retries_end_at_the_stop_time(app: RunningApp, around: Surroundings) -> None:
    event = build_event(fate="mail:mailbox-full", life_s=4.0)
    app.admit(event)
    stop_at = stop_of(app, event)

    told = app.settled(event["event_id"])

    email = app.email(event["event_id"])
    ends = {("failed", "not_accepted_no_time_left"), ("expired", "too_close_to_expiry")}
    assert (told["state"], email["reason"]) in ends
    classes = [each["class"] for each in email["attempts"]]
    assert classes == ["first", *(f"retry-{n}" for n in range(1, len(classes)))]
    assert len(classes) >= 2
    assert all(datetime.fromisoformat(each["started_at"]) < stop_at for each in email["attempts"])
    tried = around.inbox.journal(phase="rcpt", recipient=event["destinations"]["email"])
    assert len(tried) == len(classes)
    assert all(datetime.fromisoformat(str(entry["at"])) < stop_at for entry in tried)


def test_p5_a_call_that_hangs_is_cut_before_the_stop_time(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event(fate="mail:hold-at-data", life_s=2.6)  # one call fits in, and no retry
    recipient = event["destinations"]["email"]
    app.admit(event)

    told = app.settled(event["event_id"])

    assert told["state"] == "failed"
    assert app.email(event["event_id"])["reason"] == "not_accepted_no_time_left"
    for entry in around.inbox.held():
        if entry["recipient"] == recipient:
            around.inbox.release(int(str(entry["id"])))
    until(lambda: all(e["recipient"] != recipient for e in around.inbox.held()), 5)
    assert around.mails(event) == []
    (left,) = around.rows(
        "SELECT d.stop_at - max(a.deadline) AS left FROM delivery d JOIN attempt a"
        " USING (notice_id, channel) JOIN notice n USING (notice_id)"
        " WHERE n.event_id = %s GROUP BY d.stop_at",
        event["event_id"],
    )
    assert left["left"].total_seconds() >= 0


def test_p5_an_event_that_comes_too_late_is_evidence_and_no_mail(
    app: RunningApp, around: Surroundings
) -> None:
    dead = build_event(life_s=60.0, age_s=61.0)
    dying = build_event(life_s=60.0, age_s=59.5)

    states = {event["event_id"]: app.settled(app.admit(event))["state"] for event in (dead, dying)}

    assert set(states.values()) == {"expired"}
    assert app.email(dead["event_id"])["reason"] == "expired_on_arrival"
    assert around.mails(dead) == around.mails(dying) == []
    asked = {entry.get("event_id") for entry in around.auth.journal()}
    assert asked.isdisjoint(states)


def test_p5_a_link_that_comes_at_the_last_moment_starts_nothing(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event(fate="link:hold", life_s=3.0)
    app.admit(event)
    (held,) = around.auth.wait_for(phase="held", event_id=event["event_id"])

    told = app.settled(event["event_id"])
    around.auth.release(int(str(held["id"])))

    assert told["state"] == "expired"
    assert app.email(event["event_id"])["attempts"] == []
    assert around.inbox.journal(recipient=event["destinations"]["email"]) == []
