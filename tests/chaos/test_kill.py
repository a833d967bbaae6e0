"""SIGKILL between every two of the six steps: nothing is lost, nothing is sent twice.

One process carries a notice at each of these places at once; it is killed from outside, a new
one is started, and the inbox is counted.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from peers.events import Event, build_event
from peers.testing import InboxHandle
from tests.chaos.conftest import Run, Surround
from tests.running import RunningApp, Surroundings, until

ROOMY = """
retry_backoff_s = [0.3, 0.6]
retry_jitter = 0.1
poll_every_s = 1.0
lease_s = 7.0
sweep_every_s = 0.2

[safety_margin_s]
email = 1.0
sms = 1.0

[fallback_reserve]
share = 0.2
floor_s = 12.0
cap_s = 12.0

[call_timeout_s]
email = 5.0
sms = 1.5

[final_reply_timeout_s]
email = 5.0
"""
"""Time enough to bring a process into every step before it is killed."""

BEFORE_THE_INTENT = ["before claim", "after claim", "after link", "after render", "at intent"]
AFTER_THE_INTENT = {"at recipient": 0, "at data": 0, "after dot": 1, "at record": 1}
"""Places behind the intent, with the mails that the inbox has by then."""


class Stage:
    """A notice held at each place, by a peer that stands still or a row that is locked."""

    def __init__(self, app: RunningApp) -> None:
        self.app, self.around = app, app.around
        self.events: dict[str, Event] = {}

    def post(self, place: str, fate: str = "", **fields: object) -> Event:
        event = build_event(fate=fate, **fields)  # type: ignore[arg-type]
        self.events[place] = event
        self.app.admit(event)
        return event

    def state(self, place: str) -> str:
        return str(self.app.email(self.events[place]["event_id"])["state"])

    def wait(self, place: str, state: str) -> None:
        until(lambda: self.state(place) == state, 5, f"{place} to be {state}")


@contextmanager
def everywhere(app: RunningApp) -> Iterator[Stage]:
    """Bring one process into every place between two steps, and keep it there."""
    stage, around = Stage(app), app.around
    inbox, auth = around.inbox, around.auth

    at_record = stage.post("at record", "mail:hold")
    inbox.wait_for(phase="held", recipient=at_record["destinations"]["email"])
    after_dot = stage.post("after dot", "mail:hold")
    inbox.wait_for(phase="held", recipient=after_dot["destinations"]["email"])
    at_data = stage.post("at data", "mail:hold-at-data")
    inbox.wait_for(phase="held", recipient=at_data["destinations"]["email"])
    stage.post("at recipient", "mail:hold-at-rcpt")
    inbox.wait_for(phase="held", held_in="rcpt")
    stage.post("before claim", account_id="acc-waits")
    inbox.script("connect", "hold", times=2)
    at_intent = stage.post("at intent")
    inbox.wait_for(phase="held", held_in="connect")
    stage.post("after render")
    inbox.wait_for(phase="held", held_in="connect", count=2)
    after_link = stage.post("after link", "link:hold")
    auth.wait_for(phase="held", event_id=after_link["event_id"])
    with around.locked(at_record, at_intent, after_link):
        release_first(inbox, held_in="connect")
        release_first(inbox, recipient=at_record["destinations"]["email"])
        auth.release()
        until(lambda: around.waiting_for_locks() == 3, 5, "three statements to wait for a row")
        after_claim = stage.post("after claim", "link:hold")
        auth.wait_for(phase="held", event_id=after_claim["event_id"])
        for place in ("after claim", "after link", "after render", "at intent"):
            stage.wait(place, "claimed")
        for place in AFTER_THE_INTENT:
            stage.wait(place, "attempted")
        yield stage


def release_first(inbox: InboxHandle, **facts: str) -> None:
    """Let the oldest held conversation with these facts go on."""
    entry = next(e for e in inbox.held() if all(e[name] == facts[name] for name in facts))
    inbox.release(int(str(entry["id"])))


def let_everything_go(around: Surroundings, stage: Stage) -> None:
    """The peers answer whoever is left to hear them; links come at once from now on."""
    stored_then = around.stored()
    around.inbox.clear()
    around.inbox.release()
    around.auth.release()
    for place in ("after claim", "after link"):
        around.auth.script(reset_request_id=stage.events[place]["reset_request_id"])
    until(lambda: not around.inbox.held() and not around.auth.held(), 5, "nothing to be held")
    assert around.stored() == stored_then, "something was sent by a process that is gone"


@pytest.mark.parametrize("group", [False, True], ids=["the printed pid", "the whole group"])
def test_p9_killed_between_any_two_steps_nothing_is_lost_or_doubled(
    database_url: str, surround: Surround, run: Run, group: bool
) -> None:
    around = surround(database_url, policy=ROOMY)
    app = run(around, more={"NOTIFIER_WORKERS": "16"})
    with around.halted("account:acc-waits"):
        with everywhere(app) as stage:
            app.signal(signal.SIGKILL, group=group)
            app.wait_until_gone()
            assert not app.serves()
        let_everything_go(around, stage)
        app.start()
        app.wait_until_ready()
    for place in BEFORE_THE_INTENT:
        event = stage.events[place]
        told = app.settled(event["event_id"], within_s=40)
        assert told["state"] == "complete", place
        assert [a["class"] for a in app.email(event["event_id"])["attempts"]] == ["first"], place
        assert len(around.mails(event)) == 1, place
    for place, mails in AFTER_THE_INTENT.items():
        event = stage.events[place]
        email = app.wait_for_email(event["event_id"], "unknown", within_s=40)
        assert email["reason"] == "worker_lost", place
        (attempt,) = email["attempts"]
        assert (attempt["outcome"], attempt["reason"]) == ("unknown", "worker_lost"), place
        assert len(around.mails(event)) == mails, place
    assert len(around.stored()) == len(BEFORE_THE_INTENT) + sum(AFTER_THE_INTENT.values())
