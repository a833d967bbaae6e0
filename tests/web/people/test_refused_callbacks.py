"""Refused callbacks: the past hour by provider, with the limit, where their alert leads."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tests import people_alerts, people_seed
from tests.signals import seeding

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.people_pages import Browser

RUNBOOK = "/runbooks/callbacks_refused"
REFUSED = "callback_refused"


def chart(page: str) -> str:
    """The part of the page that tells of refused callbacks; its words and its drawing."""
    return page.split('aria-labelledby="refused-title"')[1].partition("</section>")[0]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def bars(html: str) -> list[int]:
    """How many bars each drawing has."""
    return [path.count("M") for path in re.findall(r'class="grow" d="([^"]*)"', html)]


def seed_hour(database: Database) -> datetime:
    """Two hours that were counted whole, with refusals of two providers."""
    with database.connection() as connection:
        now = people_seed.database_now(connection).replace(second=0, microsecond=0)
        seeding.span(connection, now - timedelta(hours=2), now + timedelta(minutes=1))
        for ago, provider, n in (
            (20, "postmark", 8), (22, "postmark", 4), (62, "postmark", 3), (75, "postmark", 90),
            (2, "twilio", 1),
        ):  # fmt: skip
            seeding.count(connection, now - timedelta(minutes=ago), REFUSED, n, provider=provider)
    return now


def test_the_runbook_draws_the_past_hour_of_each_provider_with_the_limit(
    on_call: Browser, database: Database
) -> None:
    seed_hour(database)
    shown = chart(on_call.get(RUNBOOK).text)
    told = words(shown)
    assert "postmark : 12 in the hour, 0 in its last 5 minutes; limit 10, reached in that" in told
    assert "twilio : 1 in the hour, 1 in its last 5 minutes; limit 10" in told
    # What came two minutes before the hour still stands in its first three bars.
    assert bars(shown) == [3 + 7, 2]
    assert shown.count('class="limit"') == 1
    assert 'class="missed"' not in shown


def test_what_nobody_counted_is_hatched_and_never_told_as_none(
    on_call: Browser, database: Database
) -> None:
    assert "Not counted" in words(chart(on_call.get(RUNBOOK).text))
    with database.connection() as connection:
        now = people_seed.database_now(connection)
        seeding.span(connection, now - timedelta(minutes=30), now)
    assert "None of any provider" in words(chart(on_call.get(RUNBOOK).text))
    with database.connection() as connection:
        seeding.count(connection, now - timedelta(minutes=9), REFUSED, 1, provider="postmark")
    assert chart(on_call.get(RUNBOOK).text).count('class="missed"') == 1


def test_the_alert_s_page_draws_the_hour_of_its_provider_alone(
    on_call: Browser, database: Database
) -> None:
    seed_hour(database)
    with database.connection() as connection:
        ids = {
            key: people_alerts.open_alert(connection, rule="callbacks_refused", key=key)
            for key in ("postmark", "resend")
        }
        other = people_alerts.open_alert(connection)
    assert words(chart(on_call.get(f"/alerts/{ids['postmark']}").text)).count("in the hour") == 1
    quiet = words(chart(on_call.get(f"/alerts/{ids['resend']}").text))
    assert "resend : 0 in the hour" in quiet
    assert "postmark" not in quiet
    assert "refused-title" not in on_call.get(f"/alerts/{other}").text


def test_other_runbooks_draw_nothing(on_call: Browser) -> None:
    assert "refused-title" not in on_call.get("/runbooks/queue_age").text
