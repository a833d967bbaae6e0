"""A signed event, one mail, and what everybody may then read."""

from __future__ import annotations

import itertools

from peers.events import build_event
from tests.running import RunningApp, Surroundings


def test_a_signed_event_becomes_one_mail_with_our_reference(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event()

    answer = app.post(event)
    assert answer.status == 202
    told = app.settled(event["event_id"])

    (mail,) = around.mails(event)
    email = app.email(event["event_id"])
    (attempt,) = email["attempts"]
    assert mail["reference"] == attempt["reference"]
    assert (attempt["class"], attempt["outcome"]) == ("first", "accepted")
    assert email["provider_message_id"].strip("<>") == mail["message_id"]
    assert told["notification_id"] == answer.json()["notification_id"]
    assert (told["state"], told["support_word"]) == ("complete", "accepted")
    assert "reached the mail system" in told["headline"]
    assert "spam" in told["customer_action"]
    (row,) = around.rows("SELECT state, basis FROM notice WHERE event_id = %s", event["event_id"])
    assert (row["state"], row["basis"]) == ("complete", "accepted")


def test_the_mail_carries_the_link_and_nothing_of_ours_does(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event()
    app.settled(app.admit(event))

    (mail,) = around.inbox.messages(event["destinations"]["email"])
    link = next(word for word in mail["text"].split() if word.startswith("https://account."))

    token = link.rpartition("/")[2]
    seen = str(app.status(event["event_id"])) + str(app.trail(event["event_id"])) + app.log
    assert len(token) == 64
    assert token not in seen
    assert event["destinations"]["email"] not in seen


def test_the_trail_tells_each_step_in_order(app: RunningApp) -> None:
    event = build_event()
    app.settled(app.admit(event))

    trail = app.trail(event["event_id"])

    assert [(row["from_state"], row["to_state"]) for row in trail if row["channel"] == "email"] == [
        (None, "queued"),
        ("queued", "claimed"),
        ("claimed", "attempted"),
        ("attempted", "accepted"),
    ]
    assert [row["seq"] for row in trail] == list(range(1, len(trail) + 1))
    assert all(a["hash"] == b["prev_hash"] for a, b in itertools.pairwise(trail))


def test_p1_a_repeat_gets_the_same_answer_and_no_second_mail(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event()
    first = app.post(event)
    app.settled(event["event_id"])

    again = app.post(event)
    different = app.post({**event, "account_id": "somebody-else"})

    assert again.status == 202
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json()["notification_id"] == first.json()["notification_id"]
    assert again.json()["status"] == "complete"
    assert (different.status, different.json()["code"]) == (409, "event_conflict")
    assert len(around.mails(event)) == 1


def test_an_event_of_a_channel_that_is_not_set_up_is_not_sent_and_says_why(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event(mode="sms_only")

    told = app.settled(app.admit(event))

    assert (told["state"], told["support_word"]) == ("suppressed", "not sent")
    assert around.mails(event) == []
