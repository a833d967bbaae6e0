"""A cancel stops what has not left, and is honest about what may have."""

from __future__ import annotations

from peers.events import EVENTS_PATH, body_of, build_event, signed_headers
from tests.running import RunningApp, Surroundings


def test_a_cancel_before_the_start_is_the_end(app: RunningApp, around: Surroundings) -> None:
    event = build_event(fate="link:hold")
    app.admit(event)
    (held,) = around.auth.wait_for(phase="held", event_id=event["event_id"])

    answer = app.cancel(event["event_id"], "used")
    around.auth.release(int(str(held["id"])))

    assert answer.json() == {"state": "canceled", "canceled": ["email"], "may_have_left": []}
    told = app.settled(event["event_id"])
    assert (told["state"], told["support_word"]) == ("canceled", "canceled")
    email = app.email(event["event_id"])
    assert (email["reason"], email["attempts"]) == ("reset_used", [])
    barrier = build_event()  # the same worker has gone on to other work
    app.settled(app.admit(barrier))
    assert around.mails(event) == []


def test_the_first_reason_of_a_cancel_stays(app: RunningApp) -> None:
    event = build_event(fate="link:unavailable")
    app.admit(event)

    answers = [app.cancel(event["event_id"], reason) for reason in ("revoked", "used")]

    assert answers[0].json() == answers[1].json()
    assert app.email(event["event_id"])["reason"] == "reset_revoked"


def test_a_cancel_of_what_was_sent_says_that_it_left(app: RunningApp) -> None:
    event = build_event()
    app.settled(app.admit(event))

    answer = app.cancel(event["event_id"], "superseded")

    assert answer.json() == {"state": "complete", "canceled": [], "may_have_left": ["email"]}
    told = app.status(event["event_id"])
    assert told["support_word"] == "accepted"
    assert "a newer request has taken its place" in told["headline"]
    assert "the newest message" in told["customer_action"]


def test_a_cancel_between_two_attempts_forbids_the_next(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event(fate="mail:hold-at-data")
    app.admit(event)
    (held,) = around.inbox.wait_for(phase="held", recipient=event["destinations"]["email"])

    assert app.cancel(event["event_id"], "used").json()["may_have_left"] == ["email"]
    around.inbox.release(int(str(held["id"])), drop=True)

    email = app.wait_for_email(event["event_id"], "canceled")
    assert email["reason"] == "canceled_before_retry"
    assert len(email["attempts"]) == 1
    assert around.mails(event) == []


def test_a_cancel_of_an_unknown_event_is_not_found(app: RunningApp) -> None:
    assert app.cancel("evt-nobody-knows", "used").status == 404


def test_a_cancel_that_somebody_saw_stops_no_other_notice(
    app: RunningApp, around: Surroundings
) -> None:
    mine, other = build_event(fate="link:unavailable"), build_event(fate="link:hold")
    app.admit(mine)
    app.admit(other)
    (held,) = around.auth.wait_for(phase="held", event_id=other["event_id"])
    body = body_of({"reason": "used"})
    seen = {
        name.replace("-", "_"): value
        for name, value in signed_headers(around.secrets.ingest, body).items()
    }

    with app.poster() as poster:
        ended, replayed = (
            poster.post_bytes(f"{EVENTS_PATH}/{event['event_id']}/cancel", body, **seen)
            for event in (mine, other)
        )
    around.auth.release(int(str(held["id"])))

    assert ended.status == 200
    assert (replayed.status, replayed.json()["code"]) == (409, "signature_reused")
    app.settled(other["event_id"])
    assert len(around.mails(other)) == 1
