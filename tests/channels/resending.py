"""The process with Resend for email and Twilio for texts, and what a replay is told by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from peers.events import Event, build_event
from peers.testing import ResendHandle, TwilioHandle, running_resend, running_twilio
from peers.twilio_words import number_for
from tests.channels.conftest import TIMES
from tests.running import RunningApp, Surroundings, surroundings, until

SECRET = "whsec_c2lnbmVkIGJ5IHRoZSBzdGFuZC1pbg=="
PEOPLE = count(700)


@dataclass(frozen=True)
class Resending:
    """A running process and its stand-ins."""

    app: RunningApp
    around: Surroundings
    resend: ResendHandle
    twilio: TwilioHandle

    def admit(self, fate: str, *, life_s: float = 30, mode: str = "email_only") -> Event:
        """Admit an event of a person whose mail comes to this fate."""
        event = build_event(life_s=life_s)
        email = f"{fate}+{event['event_id'][-12:]}@example.test"
        sms = number_for("deliver", next(PEOPLE))
        event["destinations"] = {"email": email, "sms": sms}
        inputs = {"sms_consent": True, "region": "GB"}
        event["policy"] = {"mode": mode, "inputs": inputs}
        self.around.auth.person(event["reset_request_id"], email=email, sms=sms)
        self.app.admit(event)
        return event

    def held_then_cut(self, event: Event) -> None:
        """The first call is kept by the provider, stands still, and ends without an answer."""
        address = event["destinations"]["email"]
        [entry] = self.resend.wait_for(phase="held", recipient=address)
        self.resend.release(int(str(entry["id"])), drop=True)

    @contextmanager
    def called_back(self) -> Iterator[None]:
        """For the length of the block Resend tells by webhooks; else by polls alone."""
        self.resend.callback_to(f"{self.app.base_url}/callbacks/resend/", SECRET)
        try:
            yield
        finally:
            self.resend.callback_to(f"{self.app.base_url}/callbacks/nobody/", SECRET)

    def posts(self, event: Event) -> int:
        """POSTs on the wire for the person of an event."""
        return self.resend.posts(recipient=event["destinations"]["email"])

    def messages(self, event: Event) -> int:
        """Messages that the provider holds for the person of an event."""
        return len(self.resend.stored(recipient=event["destinations"]["email"]))

    def delivery(self, event: Event, channel: str = "email") -> dict[str, Any]:
        """One channel's part of the status answer."""
        status = self.app.status(event["event_id"])
        return next(each for each in status["deliveries"] if each["channel"] == channel)

    def reaches(
        self, event: Event, *states: str, channel: str = "email", within_s: float = 20
    ) -> dict[str, Any]:
        """Wait until a channel stands in one of `states`; its part of the status then."""
        until(
            lambda: self.delivery(event, channel)["state"] in states,
            within_s,
            lambda: f"{channel} in {states}: {self.reasons(event)}\n{self.app.log[-2000:]}",
        )
        return self.delivery(event, channel)

    def reasons(self, event: Event) -> list[str]:
        """The reason of every row of an event's trail, in order."""
        return [row["reason"] for row in self.app.trail(event["event_id"])]

    def looked(self, event: Event, times: int) -> None:
        """Wait until the unknown email was looked at `times` more."""
        query = (
            "SELECT d.looks FROM delivery d JOIN notice n USING (notice_id)"
            " WHERE n.event_id = %s AND d.channel = 'email'"
        )
        before = self.around.rows(query, event["event_id"])[0]["looks"]
        until(
            lambda: self.around.rows(query, event["event_id"])[0]["looks"] >= before + times,
            15,
            "the unknown email to be looked at again",
        )


@contextmanager
def resending(database_url: str, folder: Path, *, policy: str = TIMES) -> Iterator[Resending]:
    """The process and its stand-ins; Resend calls nobody back unless a test says where."""
    with running_resend() as resend, running_twilio() as twilio:
        more = {
            "NOTIFIER_EMAIL_PROVIDERS": "resend",
            "NOTIFIER_RESEND_API_KEY": resend.api_key,
            "NOTIFIER_RESEND_WEBHOOK_SECRET": SECRET,
            "NOTIFIER_RESEND_BASE_URL": resend.url,
            "NOTIFIER_SMS_PROVIDERS": "twilio",
            "NOTIFIER_TWILIO_ACCOUNT_SID": twilio.account_sid,
            "NOTIFIER_TWILIO_AUTH_TOKEN": twilio.auth_token,
            "NOTIFIER_TWILIO_FROM": "+15005550006",
            "NOTIFIER_TWILIO_BASE_URL": twilio.url,
        }
        with (
            surroundings(database_url, folder, policy=policy, more=more) as around,
            RunningApp(around) as app,
        ):
            yield Resending(app, around, resend, twilio)
