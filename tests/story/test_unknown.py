"""A server that takes a mail and then gives no sense: nobody knows, and nobody guesses."""

from __future__ import annotations

import pytest

from peers.events import build_event
from tests.running import RunningApp, Surroundings

AFTER_THE_DOT = {
    "hang-after-dot": "timeout",
    "drop-after-dot": "connection_lost",
    "reset-after-dot": "connection_lost",
    "garbage-after-dot": "unreadable_answer",
    "lost-after-dot": "connection_lost",
}


def test_p3_silence_after_the_final_dot_is_unknown_and_never_sent_again(
    app: RunningApp, around: Surroundings
) -> None:
    events = {fate: build_event(fate=f"mail:{fate}", life_s=7.0) for fate in AFTER_THE_DOT}
    for event in events.values():
        app.admit(event)

    for fate, event in events.items():
        email = app.wait_for_email(event["event_id"], "unknown")
        assert email["reason"] == AFTER_THE_DOT[fate], fate
        told = app.status(event["event_id"])
        assert (told["state"], told["support_word"]) == ("email_pending", "unknown")
        assert "may have been sent" in told["headline"]

    for fate, event in events.items():
        told = app.settled(event["event_id"])
        email = app.email(event["event_id"])
        assert (told["state"], email["reason"]) == ("expired", "unknown_at_expiry"), fate
        (attempt,) = email["attempts"]
        assert (attempt["outcome"], attempt["reason"]) == ("unknown", AFTER_THE_DOT[fate])
        tried = around.inbox.journal(phase="rcpt", recipient=event["destinations"]["email"])
        assert len(tried) == 1, fate
        assert len(around.mails(event)) == (0 if fate == "lost-after-dot" else 1)


@pytest.mark.parametrize("fate", ["hang-after-dot", "drop-after-dot"])
def test_p3_a_cancel_does_not_hide_that_a_mail_may_have_left(app: RunningApp, fate: str) -> None:
    event = build_event(fate=f"mail:{fate}")
    app.admit(event)
    app.wait_for_email(event["event_id"], "unknown")

    answer = app.cancel(event["event_id"], "used")

    assert answer.status == 200
    assert answer.json() == {"state": "canceled", "canceled": [], "may_have_left": ["email"]}
    told = app.status(event["event_id"])
    assert told["support_word"] == "unknown"
    assert app.email(event["event_id"])["state"] == "unknown"


def test_p3_a_line_cut_inside_the_text_leads_to_no_guess(
    app: RunningApp, around: Surroundings
) -> None:
    """The text may have left this machine with its final dot before the cut was seen."""
    event = build_event(fate="mail:drop-in-body", life_s=5.0)

    app.settled(app.admit(event))

    outcomes = [each["outcome"] for each in app.email(event["event_id"])["attempts"]]
    assert set(outcomes[:-1]) <= {"not_accepted"}
    assert outcomes[-1] in {"not_accepted", "unknown"}
    assert around.mails(event) == []
