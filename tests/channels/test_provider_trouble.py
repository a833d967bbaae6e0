"""Trouble that is about us pauses the provider for all; trouble about a message is its own."""

from __future__ import annotations

import pytest

from tests.channels.conftest import Channels
from tests.running import until


@pytest.mark.parametrize(
    ("fate", "detail"),
    [
        ("rate-limited", "rate_limited"),
        ("denied", "auth_error"),
        ("suspended", "account_suspended"),
    ],
)
def test_a_refusal_about_us_is_tried_again_and_pauses_the_provider(
    channels: Channels, fate: str, detail: str
) -> None:
    event = channels.event("deliver", mode="email_only", life_s=60)
    address = event["destinations"]["email"]
    channels.postmark.script(fate, recipient=address, times=1)
    channels.app.admit(event)
    until(
        lambda: channels.around.rows(
            "SELECT FROM provider_pause WHERE provider = 'postmark' AND detail = %s", detail
        ),
        15,
        "the provider to be paused",
    )
    channels.reaches(event, "email", "delivered", within_s=60)

    first, second = channels.delivery(event, "email")["attempts"]
    assert (first["outcome"], second["class"]) == ("not_accepted", "retry-1")
    assert channels.mails(event) == 2


def test_a_refusal_about_the_recipient_is_final_and_pauses_nothing(channels: Channels) -> None:
    event = channels.event("bad-address", mode="email_only")
    channels.app.admit(event)
    channels.reaches(event, "email", "failed")

    assert channels.mails(event) == 1
    assert channels.app.status(event["event_id"])["state"] == "failed"
    assert channels.delivery(event, "email")["reason"] == "refused"
