"""System: how soon a process that was killed or frozen is not called alive any more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from notifier.domain.heartbeat import BEAT_EVERY, LATE_AFTER, LOST_AFTER
from notifier.sweeps.processes import Heartbeat
from tests.database import Clock
from tests.people_pages import Browser

if TYPE_CHECKING:
    from notifier.store.database import Database


def state_of(browser: Browser, owner: str) -> str:
    """What stands in the first column of a process's row, without its icon."""
    rows = browser.get("/system").text.split("Processes of the past day")[1].split("<tr>")
    [row] = [each for each in rows if f"<code>{owner}</code>" in each]
    cell = row.split("<td")[1]
    return " ".join(re.sub(r"<svg.*?</svg>|^[^>]*>|<[^>]+>", " ", cell, flags=re.DOTALL).split())


def test_three_missed_beats_are_fifteen_seconds() -> None:
    assert LATE_AFTER > BEAT_EVERY
    assert LOST_AFTER.total_seconds() == 15


@pytest.mark.parametrize(
    ("silent_s", "told"),
    [
        (0, "alive"),
        (7, "alive"),
        (8, "late silent for 8 s"),
        (15, "late silent for 15 s"),
        (16, "silent for 16 s"),
        (300, "silent for 5 min"),
        (301, "gone silent for 5 min"),
        (780, "gone silent for 13 min"),
    ],
)
def test_a_process_is_alive_late_silent_or_gone_by_the_beats_that_it_missed(
    on_call: Browser, database: Database, clock: Clock, silent_s: int, told: str
) -> None:
    clock.freeze()
    with database.connection() as connection:
        Heartbeat("frozen", workers=16, version="1.0").beat(connection)
    clock.advance(silent_s)
    assert state_of(on_call, "frozen") == told


def test_a_process_that_said_goodbye_is_not_missed(
    on_call: Browser, database: Database, clock: Clock
) -> None:
    clock.freeze()
    with database.connection() as connection:
        heartbeat = Heartbeat("stopped", workers=16, version="1.0")
        heartbeat.beat(connection)
        heartbeat.leave(connection)
    clock.advance(60)
    assert state_of(on_call, "stopped") == "stopped"


def test_what_took_the_place_of_a_killed_process_stands_above_it(
    on_call: Browser, database: Database, clock: Clock
) -> None:
    clock.freeze()
    with database.connection() as connection:
        for owner in ("a-killed", "b-killed"):
            Heartbeat(owner, workers=16, version="1.0").beat(connection)
        clock.advance(301)
        Heartbeat("c-started", workers=16, version="1.0").beat(connection)
    page = on_call.get("/system").text
    assert page.index("<code>c-started</code>") < page.index("<code>a-killed</code>")
    assert page.count('<span class="badge calm">') == 2
    assert '<span class="badge unknown"><svg><use href="#question"/></svg>silent' not in page
