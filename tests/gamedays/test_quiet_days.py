"""Days on which nothing is wrong raise nothing; the same day with one fault does."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from notifier.store.database import Database
from notifier.store.embedded import EmbeddedServer
from tests.database import Clock
from tests.gamedays.quiet import QuietDay
from tests.gamedays.traffic import EMAIL, Moment

BETWEEN_LOOKS_S = 900.0
"""`python -m tests.gamedays` looks thirty times as often, on ten days."""
NOON_S = 12 * 3600.0


@pytest.fixture
def owned(postgres: EmbeddedServer, database_url: str) -> Iterator[Database]:
    """The test's database as somebody whom its guards do not hold."""
    path = urlsplit(database_url).path
    url = urlsplit(postgres.superuser_url)._replace(path=path).geturl()
    opened = Database(url, search_path="test_clock,notifier")
    yield opened
    opened.close()


@pytest.mark.parametrize("seed", [1, 3])
def test_an_ordinary_day_raises_no_alert(owned: Database, clock: Clock, seed: int) -> None:
    quiet = QuietDay(owned, clock, seed, BETWEEN_LOOKS_S)
    assert quiet.play() == []
    assert quiet.looks > 150
    assert quiet.day.pauses
    assert len(quiet.day.lives) > 5_000


def test_the_same_day_with_a_provider_that_times_out_at_noon_does(
    owned: Database, clock: Clock
) -> None:
    quiet = QuietDay(owned, clock, 1, BETWEEN_LOOKS_S, first_s=NOON_S - 1200, last_s=NOON_S + 900)
    quiet.day.moments = [
        Moment(each.at, "unknown", EMAIL, "timeout", each.region)
        if each.signal == "accepted" and each.provider == EMAIL and NOON_S < each.at < NOON_S + 600
        else each
        for each in sorted(quiet.day.moments)
    ]
    assert [(row["rule"], row["key"]) for row in quiet.play()] == [("unknown_rate", EMAIL)]
