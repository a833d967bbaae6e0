"""A mail that bounced softly and then arrived: what is shown of it now, and what of its past."""

from __future__ import annotations

import csv
import http.client
import io
import re
from collections.abc import Iterator

import pytest

from notifier.accounts.permissions import Role
from notifier.signals.thresholds import FAILURES
from notifier.store.database import Database
from notifier.store.rollups import count_new
from peers.events import Event
from tests.channels.conftest import Channels
from tests.people_pages import Browser, build_app, signed_in
from tests.running import until

SOFT = "unreachable"
"""What a soft bounce comes to in our words."""
COUNTED = re.compile(r"^notifier_transitions_total\{(.+)\} (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def arrived(channels: Channels) -> Event:
    """An event whose email was put off once and then delivered.

    Its account has another, so that a search for the account leads to a list.
    """
    event, other = channels.event("bounce-soft"), channels.event("deliver")
    other["account_id"] = event["account_id"]
    for each in (event, other):
        channels.app.admit(each)
        channels.reaches(each, "email", "delivered")
    return event


@pytest.fixture(scope="module")
def on_call(channels: Channels) -> Iterator[Browser]:
    database = Database(channels.around.database_url)
    yield signed_in(build_app(database), database, Role.ON_CALL)
    database.close()


def metrics_of(channels: Channels) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", channels.app.port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def main_of(page: str) -> str:
    """What stands in the middle of a page, apart from its navigation."""
    return page.partition("<main")[2].partition("</main>")[0]


def test_b048_the_list_shows_it_as_delivered_and_nothing_beside(
    on_call: Browser, arrived: Event
) -> None:
    account = f"/a/{arrived['account_id']}"

    rows = on_call.get(f"{account}?format=json").get_json()["rows"]
    page = on_call.get(account).text

    assert [(row["state"], row["email"]) for row in rows] == [("complete", "delivered")] * 2
    assert SOFT not in str(rows)
    assert arrived["event_id"] in page
    assert not re.search(rf"{SOFT}|bounce|failed", main_of(page), re.IGNORECASE)


def test_b048_its_page_has_no_failure_in_front_and_keeps_the_bounce_among_its_steps(
    on_call: Browser, channels: Channels, arrived: Event
) -> None:
    notice = channels.app.status(arrived["event_id"])["notification_id"]

    told = on_call.get(f"/n/{notice}?format=json").get_json()

    email = next(each for each in told["deliveries"] if each["channel"] == "email")
    assert (email["state"], email["reason"], email["detail"]) == ("delivered", "receipt", None)
    assert (told["state"], told["support_word"]) == ("complete", "delivered")
    assert SOFT not in told["headline"] + told["customer_action"]
    soft = [each for each in told["steps"] if each["detail"] == SOFT]
    assert {each["reason"] for each in soft} == {"fact_receipt"}
    assert channels.delivery(arrived, "email")["reason"] == "receipt"


def test_b048_what_is_taken_out_says_delivered_without_a_failure(
    on_call: Browser, arrived: Event
) -> None:
    ordered = on_call.post("/exports/new/account", format="csv", id=arrived["account_id"])
    assert ordered.status_code == 303, ordered.text

    text = on_call.get(f"{ordered.location}/file").text

    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(row["state"], row["email"]) for row in rows] == [("complete", "delivered")] * 2
    assert SOFT not in text
    assert on_call.get("/failures?format=json").get_json()["rows"] == []


def test_b048_nothing_counts_it_as_a_failure(channels: Channels, arrived: Event) -> None:
    counted = dict(COUNTED.findall(metrics_of(channels)))

    delivered = 'channel="email",reason="receipt",state="delivered"'
    assert counted.get(delivered) == "2.0"
    assert [labels for labels in counted if 'state="failed"' in labels] == []

    def was_read() -> bool:
        with channels.around.connection() as connection:
            count_new(connection)
        return bool(signals("delivered"))

    def signals(*names: str) -> list[dict[str, object]]:
        asked = "SELECT signal, n FROM rollup_count WHERE signal = ANY (%s)"
        return channels.around.rows(asked, list(names))

    until(was_read, 20, "the arrival to be counted")
    assert signals(*FAILURES, "failed") == []
