"""An unknown call is repeated under its own key: one message, whatever became of the first."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from notifier.store.embedded import EmbeddedServer
from peers.events import Event
from tests.channels.resending import Resending, resending
from tests.database import fresh_database
from tests.running import until

AFTER_ACCEPTANCE = (
    "hang-after-accept",
    "drop-after-accept",
    "reset-after-accept",
    "error-after-accept",
    "truncate",
    "junk",
)


@pytest.fixture(scope="module")
def product(
    postgres: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Resending]:
    """One process for the whole file: each test has people of its own."""
    folder = tmp_path_factory.mktemp("resending")
    with fresh_database(postgres) as url, resending(url, folder) as running:
        yield running


def one_attempt(product: Resending, event: Event) -> None:
    [attempt] = product.delivery(event)["attempts"]
    assert attempt["class"] == "first"


@pytest.mark.parametrize("fate", AFTER_ACCEPTANCE)
def test_p3_an_email_that_was_taken_unheard_is_repeated_and_is_one_message(
    product: Resending, fate: str
) -> None:
    event = product.admit(fate)
    product.reaches(event, "accepted", "delivered")

    reasons = product.reasons(event)
    assert (product.posts(event), product.messages(event)) == (2, 1)
    assert reasons.count("replay_authorised") == reasons.count("replay_started") == 1
    assert reasons.count("attempt_started") == 1
    assert reasons.index("replay_started") < reasons.index("provider_accepted")
    one_attempt(product, event)


def test_p3_an_email_that_never_arrived_is_made_by_its_replay_once(product: Resending) -> None:
    event = product.admit("hold")
    address = event["destinations"]["email"]
    product.resend.wait_for(phase="held", recipient=address)
    other = product.admit("lost-after-accept", life_s=14)
    product.held_then_cut(event)
    product.reaches(event, "accepted", "delivered")
    product.reaches(other, "expired", within_s=30)

    assert (product.posts(event), product.messages(event)) == (2, 1)
    assert (product.posts(other), product.messages(other)) == (2, 0)
    assert product.reasons(other).count("replay_started") == 1


def test_p3_a_replay_that_makes_the_message_is_accepted(product: Resending) -> None:
    with product.around.halted("provider:resend"):
        event = product.admit("deliver")
        address = event["destinations"]["email"]
        product.resend.script("lost-after-accept", recipient=address, times=1)
        product.resend.script("deliver", recipient=address)
    product.reaches(event, "accepted", "delivered")

    assert (product.posts(event), product.messages(event)) == (2, 1)
    one_attempt(product, event)


@pytest.mark.parametrize("fate", ["unavailable", "rate-limited", "drop-after-accept"])
def test_p3_a_replay_that_is_not_answered_leaves_it_unknown_and_is_the_last(
    product: Resending, fate: str
) -> None:
    with product.around.halted("provider:resend"):
        event = product.admit("hang-after-accept")
        address = event["destinations"]["email"]
        product.resend.script_replays(fate, recipient=address, times=1)
    until(lambda: product.posts(event) == 2, 15, "the replay")
    product.reaches(event, "unknown")
    product.looked(event, 2)

    assert product.delivery(event)["state"] == "unknown"
    assert (product.posts(event), product.messages(event)) == (2, 1)


def test_a_webhook_tells_of_the_message_by_our_reference(product: Resending) -> None:
    with product.called_back():
        event = product.admit("late-3")
        told = product.reaches(event, "delivered")
        [entry] = product.resend.wait_for(
            phase="callback", recipient=event["destinations"]["email"], word="delivered"
        )

    assert entry["status"] == 204
    assert told["provider_message_id"] == entry["message_id"]
    assert product.messages(event) == 1


# --- what forbids it


def test_p10_under_a_halt_no_replay_starts_and_after_it_one_does(product: Resending) -> None:
    event = product.admit("hold")
    product.resend.wait_for(phase="held", recipient=event["destinations"]["email"])
    with product.around.halted("provider:resend"):
        product.held_then_cut(event)
        product.reaches(event, "unknown")
        product.looked(event, 2)
        assert product.posts(event) == 1
    product.reaches(event, "accepted", "delivered")

    assert (product.posts(event), product.messages(event)) == (2, 1)


def test_p6_once_the_text_was_queued_no_replay_starts(product: Resending) -> None:
    event = product.admit("hold", mode="email_then_sms")
    product.resend.wait_for(phase="held", recipient=event["destinations"]["email"])
    with product.around.halted("channel:email"):
        product.held_then_cut(event)
        product.reaches(event, "delivered", channel="sms")
    product.looked(event, 2)

    assert product.posts(event) == 1
    assert "replay_started" not in product.reasons(event)
    assert product.twilio.posts(recipient=event["destinations"]["sms"]) == 1


def test_p5_after_the_stop_time_no_replay_starts(product: Resending) -> None:
    event = product.admit("hold", life_s=6)
    product.resend.wait_for(phase="held", recipient=event["destinations"]["email"])
    with product.around.halted("provider:resend"):
        product.held_then_cut(event)
        product.reaches(event, "unknown")
        until(
            lambda: product.app.status(event["event_id"])["remaining_s"] <= 1,
            15,
            "the stop time to have come",
        )
    product.reaches(event, "expired")

    assert (product.posts(event), product.messages(event)) == (1, 1)
    assert product.reasons(event)[-1] == "unknown_at_expiry"


def test_p3_a_message_that_reads_otherwise_by_now_is_not_sent_in_its_place(
    product: Resending,
) -> None:
    event = product.admit("hold")
    address = event["destinations"]["email"]
    product.resend.wait_for(phase="held", recipient=address)
    product.around.auth.person(event["reset_request_id"], email=address, name="Ada Quillfeather")
    product.held_then_cut(event)
    product.reaches(event, "unknown")
    product.around.auth.wait_for(phase="asked", event_id=event["event_id"], count=2)
    product.looked(event, 2)

    assert (product.delivery(event)["state"], product.posts(event)) == ("unknown", 1)


# --- killed in the middle


@pytest.mark.parametrize("first", ["hang-after-accept", "lost-after-accept"])
def test_p9_killed_in_mid_replay_it_stays_unknown_and_is_one_message(
    postgres: EmbeddedServer, tmp_path: Path, first: str
) -> None:
    with fresh_database(postgres) as url, resending(url, tmp_path) as product:
        with product.around.halted("provider:resend"):
            event = product.admit("deliver", life_s=60)
            address = event["destinations"]["email"]
            product.resend.script(first, recipient=address, times=1)
            product.resend.script("hold", recipient=address)
            product.resend.script_replays("hold", recipient=address)
        product.resend.wait_for(phase="held", recipient=address)
        with product.around.halted("all") as acknowledged:
            assert [(each.state, each.channel) for each in acknowledged.in_flight] == [
                ("attempted", "email")
            ]
            product.app.signal(signal.SIGKILL)
            product.app.wait_until_gone()
        product.resend.release(drop=True)
        product.app.start()
        product.app.wait_until_ready()
        told = product.reaches(event, "unknown", within_s=30)
        product.looked(event, 2)

        assert told["reason"] == "worker_lost"
        assert product.delivery(event)["state"] == "unknown"
        assert (product.posts(event), product.messages(event)) == (2, 1)
        assert product.reasons(event).count("replay_started") == 1
