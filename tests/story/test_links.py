"""What the auth service may answer to a link request, and what then becomes of the notice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from peers.events import build_event
from tests.running import RunningApp, Surroundings, until


@pytest.mark.parametrize(
    ("fate", "reason"), [("no-destination", "no_destination"), ("not-permitted", "not_permitted")]
)
def test_a_404_with_a_reason_suppresses_the_channel(
    app: RunningApp, around: Surroundings, fate: str, reason: str
) -> None:
    event = build_event(fate=f"link:{fate}")

    told = app.settled(app.admit(event))

    assert (told["state"], told["support_word"]) == ("suppressed", "not sent")
    email = app.email(event["event_id"])
    assert (email["state"], email["reason"]) == ("suppressed", reason)
    assert around.mails(event) == []


@pytest.mark.parametrize(
    ("fate", "state", "reason"),
    [
        ("used", "canceled", "reset_used"),
        ("superseded", "canceled", "reset_superseded"),
        ("revoked", "canceled", "reset_revoked"),
        ("expired", "expired", "window_closed"),
    ],
)
def test_a_410_ends_the_notice(
    app: RunningApp, around: Surroundings, fate: str, state: str, reason: str
) -> None:
    event = build_event(fate=f"link:{fate}")

    told = app.settled(app.admit(event))

    assert (told["state"], told["support_word"]) == (state, state)
    email = app.email(event["event_id"])
    assert (email["state"], email["reason"], email["attempts"]) == (state, reason, [])
    assert around.mails(event) == []


UNUSABLE = {
    "bare-404": "http_404",
    "error": "http_500",
    "redirect": "http_3xx",
    "malformed": "not_json",
    "empty": "no_destination_field",
    "truncate": "not_http",
    "drop": "not_http",
    "hang": "no_answer_in_time",
}


def test_an_unusable_answer_is_asked_for_again_and_uses_up_no_attempt(
    app: RunningApp, around: Surroundings
) -> None:
    events = {fate: build_event(fate=f"link:{fate}", life_s=12.0) for fate in UNUSABLE}
    for event in events.values():
        app.admit(event)

    def tried(fate: str) -> int:
        return app.reasons(events[fate]["event_id"]).count("link_unavailable")

    for fate, event in events.items():
        until(lambda fate=fate: tried(fate) >= 1, 10, f"{fate} to be put back")  # type: ignore[misc]
        assert app.status(event["event_id"])["support_word"] == "queued", fate
        assert app.email(event["event_id"])["attempts"] == [], fate
        assert around.mails(event) == []
        rows = [row for row in app.trail(event["event_id"]) if row["reason"] == "link_unavailable"]
        assert {row["detail"] for row in rows} == {UNUSABLE[fate]}, fate


def test_a_link_that_comes_at_the_second_request_is_sent_as_the_first_attempt(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event()
    around.auth.script(status=503, times=1, reset_request_id=event["reset_request_id"])

    app.settled(app.admit(event))

    (attempt,) = app.email(event["event_id"])["attempts"]
    assert attempt["class"] == "first"
    assert "link_unavailable" in app.reasons(event["event_id"])
    assert len(around.mails(event)) == 1


def test_a_newer_destination_rules_and_the_trail_says_so(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event()
    newer = f"newer+{event['event_id']}@elsewhere.example"
    around.auth.person(event["reset_request_id"], email=newer)

    app.settled(app.admit(event))

    assert around.mails(event) == []
    assert around.stored().count(newer) == 1
    assert "destination_changed" in app.reasons(event["event_id"])
    mask = app.email(event["event_id"])["destination_mask"]
    assert mask.startswith("n")
    assert newer not in mask


def test_a_destination_that_the_event_left_out_is_learnt_from_the_link(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event(destinations=None)
    learnt = f"learnt+{event['event_id']}@elsewhere.example"
    around.auth.person(event["reset_request_id"], email=learnt)

    app.settled(app.admit(event))

    assert around.stored().count(learnt) == 1
    assert "destination_changed" not in app.reasons(event["event_id"])


def test_the_link_may_shorten_the_life_and_never_lengthen_it(
    app: RunningApp, around: Surroundings
) -> None:
    shorter, longer = build_event(), build_event()
    now = datetime.now(UTC)
    earlier, later = now + timedelta(seconds=120), now + timedelta(days=2)
    for event, moment in ((shorter, earlier), (longer, later)):
        around.auth.person(
            event["reset_request_id"],
            email=event["destinations"]["email"],
            expires_at=moment.isoformat(),
        )
        app.settled(app.admit(event))

    told = [app.status(event["event_id"])["expires_at"] for event in (shorter, longer)]
    assert datetime.fromisoformat(told[0]) == earlier
    assert datetime.fromisoformat(told[1]) == datetime.fromisoformat(longer["expires_at"])
    notes = [row["reason"] for row in app.trail(shorter["event_id"])]
    assert "life_shortened" in notes
    assert len(around.mails(shorter)) == len(around.mails(longer)) == 1


def test_p5_a_life_shortened_into_the_margin_starts_nothing(
    app: RunningApp, around: Surroundings
) -> None:
    event = build_event()
    soon = datetime.now(UTC) + timedelta(seconds=0.9)
    around.auth.person(
        event["reset_request_id"],
        email=event["destinations"]["email"],
        expires_at=soon.isoformat(),
    )

    told = app.settled(app.admit(event))

    assert told["state"] == "expired"
    assert app.email(event["event_id"])["attempts"] == []
    assert around.mails(event) == []
