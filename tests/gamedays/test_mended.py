"""Once a fault is mended, what it left behind is not told as a fault of its own."""

from __future__ import annotations

import pytest

from notifier.domain.outcome import about_us
from notifier.domain.reasons import Detail
from notifier.store.database import Database
from tests.database import Clock
from tests.db.rig import Rig
from tests.gamedays.conftest import NIGHT
from tests.gamedays.ground import LIFE_S, PROVIDER, GameDay

USUAL_S = 180.0
SHORT_LIFE_S = 60.0
"""By this one an alert ends after half a minute without its cause."""
OUTAGE_S = 1.5 * LIFE_S
"""Long enough for notices to expire of it."""
AFTERWARDS_S = 3 * LIFE_S


def ended(day: GameDay) -> list[str]:
    rows = day.rig.rows("SELECT rule FROM alert_episode WHERE state = 'resolved'")
    return [row["rule"] for row in rows]


def test_p11_senders_that_come_back_leave_one_alert(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    day.run(OUTAGE_S, day.admit)
    day.run(AFTERWARDS_S, day.admit_and_work_off)
    assert day.opened() == [("queue_age", "email")]
    assert ended(day) == ["queue_age"]


def test_p11_workers_and_sweeps_that_come_back_leave_one_alert(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    day.hold(8)
    day.leave_under_way(8)
    day.sweeps_run = False
    day.run(OUTAGE_S, day.admit)
    day.sweeps_run = True
    day.run(AFTERWARDS_S, day.admit_and_work_off)
    assert day.opened() == [("sweep_stalled", "scheduler")]
    assert ended(day) == ["sweep_stalled"]


def test_p11_links_that_are_refused_for_ten_minutes_are_one_alert(
    database: Database, clock: Clock
) -> None:
    """Work that waits for its next try is as stuck as work that workers are slow to take up."""
    clock.freeze(NIGHT)
    day = GameDay(Rig(database, policy={"alert": {"life_s": SHORT_LIFE_S}}), clock)
    for _ in range(4):
        day.admit()
        day.run(50, day.be_refused_links)
        day.prompt = day.be_refused_links
        day.run(100)
        day.prompt = lambda: None
    assert day.opened() == [("no_progress", "")]
    assert ended(day) == []
    day.run(2 * SHORT_LIFE_S, day.admit_and_work_off)
    assert day.opened() == [("no_progress", "")]
    assert ended(day) == ["no_progress"]


@pytest.mark.parametrize("life_s", [LIFE_S, SHORT_LIFE_S])
def test_p11_refused_credentials_are_one_alert_until_they_are_good_again(
    database: Database, clock: Clock, life_s: float
) -> None:
    """What the provider's pause tells is not told again as sends that fail, during it or after."""
    clock.freeze(NIGHT)
    day = GameDay(Rig(database, policy={"alert": {"life_s": life_s}}), clock)
    refused = about_us(Detail.AUTH_ERROR, "401")

    def try_in_vain() -> None:
        day.admit()
        day.be_refused(refused)

    day.run(USUAL_S, day.send_and_hear)
    day.run(OUTAGE_S, try_in_vain)
    assert day.opened() == [("provider_paused", PROVIDER)]
    day.run(AFTERWARDS_S, day.admit_and_work_off)
    assert day.opened() == [("provider_paused", PROVIDER)]
    assert ended(day) == ["provider_paused"]
