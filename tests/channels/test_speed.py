"""How soon a text leaves when the email is refused at once, and how soon a callback is on the page.

The bounds are far above what an idle machine shows: they catch a wait that should not be there
(a sweep's period, a poll), not a slow machine. The figures are printed with `-s`.
"""

from __future__ import annotations

import time
from datetime import datetime
from statistics import median

from tests.channels.conftest import Channels
from tests.running import until

NOTICES = 15


def test_a_text_leaves_at_once_when_the_email_is_refused(channels: Channels) -> None:
    took = []
    for _ in range(NOTICES):
        event = channels.event("bad-address")
        before = time.time()
        channels.app.admit(event)
        channels.reaches(event, "sms", "accepted", "delivered")
        number = event["destinations"]["sms"]
        stored = [each for each in channels.twilio.stored() if each["recipient"] == number]
        took.append(datetime.fromisoformat(str(stored[-1]["at"])).timestamp() - before)
    print(f"202 to the text at the provider, p50: {median(took) * 1000:.0f} ms")  # noqa: T201
    assert median(took) < 1.0


def test_a_callback_is_in_the_status_within_two_seconds(channels: Channels) -> None:
    event = channels.event("lost", mode="email_only")
    channels.app.admit(event)
    channels.reaches(event, "email", "accepted")
    message = channels.postmark.stored(recipient=event["destinations"]["email"])[0]

    before = time.monotonic()
    assert channels.postmark.tell(message["message_id"], "Delivered") == [204]
    until(lambda: channels.delivery(event, "email")["state"] == "delivered", 2, "the receipt")
    print(f"callback to status: {(time.monotonic() - before) * 1000:.0f} ms")  # noqa: T201
