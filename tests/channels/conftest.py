"""Both channels through the real process: Postmark for email, Twilio for texts, as stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from notifier.store.embedded import EmbeddedServer
from peers.events import Event, build_event
from peers.testing import PostmarkHandle, TwilioHandle, running_postmark, running_twilio
from peers.twilio_words import number_for
from tests.database import fresh_database
from tests.running import SHORT_TIMES, RunningApp, Surroundings, surroundings, until

CALLBACK_PASSWORD = "callback-password-of-a-test"
OLD_PASSWORD = "the-password-before-it"
OLD_TOKEN = "the-token-before-it"

TIMES = (
    SHORT_TIMES.replace(
        "poll_every_s = 1.0",
        """poll_every_s = 1.0
reconcile_after_s = [0.3, 0.5, 1.0]
settle_s = 0.5""",
    )
    + """
[observation_window]
share = 0.1
floor_s = 1.0
cap_s = 2.0
"""
)


@dataclass(frozen=True)
class Channels:
    """A running process with the stand-ins of both channels."""

    app: RunningApp
    around: Surroundings
    postmark: PostmarkHandle
    twilio: TwilioHandle
    people: Iterator[int] = field(default_factory=count)

    def event(
        self, email_fate: str, sms_fate: str = "deliver", *, life_s: float = 30, **policy: Any
    ) -> Event:
        """An event of a person whose mail and text come to these fates; texts are consented to."""
        event = build_event(life_s=life_s)
        email = f"{email_fate}+{event['event_id'][-12:]}@example.test"
        sms = number_for(sms_fate, 50 * next(self.people))
        inputs = {"sms_consent": True, "region": "GB"}
        event["destinations"] = {"email": email, "sms": sms}
        event["policy"] = {"mode": "email_then_sms", "inputs": inputs, **policy}
        self.around.auth.person(event["reset_request_id"], email=email, sms=sms)
        return event

    def mails(self, event: Event) -> int:
        """POSTs that Postmark got for the person of an event."""
        return self.postmark.posts(recipient=event["destinations"]["email"])

    def texts(self, event: Event) -> int:
        """POSTs that Twilio got for the person of an event."""
        return self.twilio.posts(recipient=event["destinations"]["sms"])

    def moves(self, event: Event, channel: str) -> list[tuple[str, str]]:
        """Every move of one channel on the trail: where to, and why."""
        return [
            (row["to_state"], row["reason"])
            for row in self.app.trail(event["event_id"])
            if row["channel"] == channel and row["to_state"] != row["from_state"]
        ]

    def reasons(self, event: Event) -> list[str]:
        """The reason of every row of an event's trail, in order."""
        return [row["reason"] for row in self.app.trail(event["event_id"])]

    def reaches(self, event: Event, channel: str, *states: str, within_s: float = 20) -> None:
        """Wait until one channel stands in one of `states`."""
        until(
            lambda: self.delivery(event, channel)["state"] in states,
            within_s,
            lambda: f"{channel} in {states}: {self.moves(event, channel)}\n{self.app.log[-2000:]}",
        )

    def delivery(self, event: Event, channel: str) -> dict[str, Any]:
        """One channel's part of the status answer."""
        status = self.app.status(event["event_id"])
        return next(each for each in status["deliveries"] if each["channel"] == channel)


@contextmanager
def both_channels(
    database_url: str, folder: Path, *, policy: str = TIMES, callbacks: bool = True
) -> Iterator[Channels]:
    """The process and its stand-ins; with `callbacks` off Postmark never calls back."""
    with running_postmark() as postmark, running_twilio() as twilio:
        more = {
            "NOTIFIER_EMAIL_PROVIDERS": "postmark",
            "NOTIFIER_POSTMARK_TOKEN": postmark.token,
            "NOTIFIER_POSTMARK_CALLBACK_PASSWORD": f"{CALLBACK_PASSWORD},{OLD_PASSWORD}",
            "NOTIFIER_POSTMARK_BASE_URL": postmark.url,
            "NOTIFIER_SMS_PROVIDERS": "twilio",
            "NOTIFIER_TWILIO_ACCOUNT_SID": twilio.account_sid,
            "NOTIFIER_TWILIO_AUTH_TOKEN": f"{twilio.auth_token},{OLD_TOKEN}",
            "NOTIFIER_TWILIO_FROM": "+15005550006",
            "NOTIFIER_TWILIO_BASE_URL": twilio.url,
        }
        with (
            surroundings(database_url, folder, policy=policy, more=more) as around,
            RunningApp(around) as app,
        ):
            if callbacks:
                postmark.callback_to(f"{app.base_url}/callbacks/postmark/", CALLBACK_PASSWORD)
            yield Channels(app, around, postmark, twilio)


@pytest.fixture(scope="module")
def channels(
    postgres: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Channels]:
    """One process with both channels for a whole file: each test has people of its own."""
    folder = tmp_path_factory.mktemp("channels")
    with fresh_database(postgres) as url, both_channels(url, folder) as running:
        yield running
