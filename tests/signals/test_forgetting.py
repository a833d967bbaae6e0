"""Alerts that ended are forgotten with their notes and pages once the policy's time is over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from notifier.flow.retention import retain
from notifier.store import alerts
from notifier.store.database import Database
from tests.db.rig import Rig
from tests.people_alerts import ended_alert, open_alert

DAY = timedelta(days=1)


@pytest.fixture
def rig(database: Database) -> Rig:
    return Rig(database, policy={"retention": {"trail_days": 100.0}})


def run(rig: Rig) -> int:
    with rig.database.connection() as connection:
        return retain(rig.shelf, connection)


def test_an_alert_goes_its_time_after_it_ended_with_all_that_stands_beside_it(
    rig: Rig, noon: datetime
) -> None:
    began = noon - 105 * DAY
    times: dict[str, Any] = {"crossed_at": began, "opened_at": began}
    with rig.database.connection() as connection:
        old = ended_alert(connection, resolved_at=noon - 101 * DAY, **times)
        late = ended_alert(connection, resolved_at=noon - 99 * DAY, **times)
        lasting = open_alert(connection, **times)
        for each in (old, late):
            connection.execute("INSERT INTO alert_note VALUES (%s, %s, 'otto', 'x')", [each, noon])
            alerts.page(connection, each, "opened", ["somebody"])
    assert (run(rig), run(rig)) == (1, 0)
    left = {row["episode_id"] for row in rig.rows("SELECT episode_id FROM alert_episode")}
    assert left == {late, lasting}
    beside = rig.rows(
        "SELECT episode_id FROM alert_note UNION ALL SELECT episode_id FROM alert_page"
    )
    assert [row["episode_id"] for row in beside] == [late, late]


def test_no_run_takes_more_than_a_batch(rig: Rig, noon: datetime) -> None:
    ended = noon - 101 * DAY
    with rig.database.connection() as connection:
        for place in range(5):
            ended_alert(
                connection, key=str(place), crossed_at=ended, opened_at=ended, resolved_at=ended
            )
        assert [alerts.forget(connection, days=100, most=2) for _ in range(4)] == [2, 2, 1, 0]
