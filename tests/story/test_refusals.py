"""A server that says no: about the message for good, about us for all, or only for now."""

from __future__ import annotations

import pytest

from peers.events import build_event
from tests.running import RunningApp, Surroundings
from tests.story.conftest import StartAlone

FINAL = {
    "refuse-rcpt": "invalid_destination",
    "blocked": "blocked",
    "disabled": "blocked",
    "quota-exceeded": "mailbox_full",
    "refuse-content": "content_rejected",
}
"""What the server says about this message or recipient, and our word for it."""

UNTIL_THE_STOP_TIME = [
    "mailbox-full",
    "rate-limited",
    "busy-after-dot",
    "drop-at-rcpt",
    "drop-at-data",
    "hang-at-rcpt",
]
"""Proven not taken, however often it is tried."""


@pytest.mark.parametrize("fate", list(FINAL))
def test_a_refusal_about_the_message_is_final(
    app: RunningApp, around: Surroundings, fate: str
) -> None:
    event = build_event(fate=f"mail:{fate}")

    told = app.settled(app.admit(event))

    assert (told["state"], told["support_word"]) == ("failed", "failed")
    email = app.email(event["event_id"])
    assert email["reason"] == "refused"
    (attempt,) = email["attempts"]
    assert (attempt["outcome"], attempt["reason"]) == ("refused", FINAL[fate])
    assert around.mails(event) == []


def test_a_passing_refusal_is_tried_again_under_its_own_class(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event(fate="mail:greylist")

    told = app.settled(app.admit(event))

    assert told["state"] == "complete"
    attempts = app.email(event["event_id"])["attempts"]
    assert [(each["class"], each["outcome"]) for each in attempts] == [
        ("first", "not_accepted"),
        ("retry-1", "accepted"),
    ]
    (mail,) = around.mails(event)
    assert mail["reference"] == attempts[1]["reference"] != attempts[0]["reference"]


def test_what_was_never_taken_is_tried_until_the_stop_time_and_then_failed(
    app: RunningApp, around: Surroundings
) -> None:
    events = {fate: build_event(fate=f"mail:{fate}", life_s=6.0) for fate in UNTIL_THE_STOP_TIME}
    for event in events.values():
        app.admit(event)

    for fate, event in events.items():
        told = app.settled(event["event_id"])
        email = app.email(event["event_id"])
        ends = {("failed", "not_accepted_no_time_left"), ("expired", "too_close_to_expiry")}
        assert (told["state"], email["reason"]) in ends, fate
        assert {each["outcome"] for each in email["attempts"]} == {"not_accepted"}, fate
        assert len(email["attempts"]) >= 2, fate
        assert around.mails(event) == [], fate


def test_a_refused_sign_in_pauses_the_provider_for_all_and_then_goes_on(
    start_alone: StartAlone,
) -> None:
    app = start_alone(credentials=("app", "right"))
    first, second = build_event(), build_event()
    app.around.inbox.script("auth", reply="535 5.7.8 Wrong credentials", times=1)

    app.admit(first)
    app.wait_for_email(first["event_id"], "queued", "accepted")
    app.admit(second)

    for event in (first, second):
        assert app.settled(event["event_id"])["state"] == "complete"
        assert len(app.around.mails(event)) == 1
    assert [each["class"] for each in app.email(first["event_id"])["attempts"]] == [
        "first",
        "retry-1",
    ]
    (told,) = app.around.rows("SELECT detail FROM attempt WHERE outcome = 'not_accepted'")
    assert told["detail"] == "auth_error"
    assert app.around.rows("SELECT FROM provider_pause") == [], "taken up, the pause has ended"
    (gap,) = app.around.rows(
        "SELECT max(started_at) - min(started_at) AS gap FROM attempt WHERE notice_id ="
        " (SELECT notice_id FROM notice WHERE event_id = %s)",
        first["event_id"],
    )
    assert gap["gap"].total_seconds() >= 1.0


def test_a_server_that_refuses_before_the_recipient_is_tried_again(
    start_alone: StartAlone,
) -> None:
    app = start_alone()
    for phase, act, reply in (
        ("connect", "reply", "421 4.3.2 Not now"),
        ("connect", "drop", ""),
        ("connect", "hang", ""),
        ("ehlo", "reply", "451 4.3.0 Later"),
        ("mail", "reply", "451 4.3.0 Later"),
        ("mail", "drop", ""),
        ("mail", "hang", ""),
        ("mail", "reply", "550 5.7.1 You may not send"),
    ):
        event = build_event()
        rule = f"{phase}-{act}-{reply}"
        app.around.inbox.script(phase, act, reply=reply, keep=False, times=1, name=rule)

        told = app.settled(app.admit(event))

        assert told["state"] == "complete", rule
        attempts = app.email(event["event_id"])["attempts"]
        assert [each["outcome"] for each in attempts] == ["not_accepted", "accepted"], rule
        assert [each["class"] for each in attempts] == ["first", "retry-1"], rule
        assert len(app.around.mails(event)) == 1, rule
