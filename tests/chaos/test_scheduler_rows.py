"""Somebody, or another version, spoils the scheduler's stored rows: nothing stops ticking."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.chaos.conftest import Run, Surround
from tests.running import RunningApp, Surroundings, until

SWEEPS = {"claim", "expiry", "fallback", "rescue", "receipts", "poll", "reconcile"}
"""Those that run every few seconds; the others have periods of their own."""

SPOIL = {
    "garbage in every row": "UPDATE {} SET job_state = '\\xdeadbeef'",
    "rows renamed": "UPDATE {} SET id = 'other-' || id",
    "rows gone": "DELETE FROM {}",
    "paused for ever": "UPDATE {} SET next_run_time = NULL",
    "due in a year": "UPDATE {} SET next_run_time = next_run_time + 31536000",
    "an unknown row": "INSERT INTO {} VALUES ('stranger', 1.0, '\\x00')",
}


def finished(around: Surroundings) -> dict[str, datetime]:
    rows = around.rows("SELECT name, finished_at FROM sweep_run WHERE finished_at IS NOT NULL")
    return {row["name"]: row["finished_at"] for row in rows}


@pytest.fixture
def app(database_url: str, surround: Surround, run: Run) -> RunningApp:
    return run(surround(database_url))


def test_spoilt_rows_are_mended_and_every_sweep_goes_on(app: RunningApp) -> None:
    around = app.around
    until(lambda: finished(around).keys() >= SWEEPS, 10, "every sweep to have run")

    for kind, statement in SPOIL.items():
        with around.connection() as connection:
            connection.execute(statement.format("scheduler.apscheduler_jobs").encode())
            (now,) = connection.execute("SELECT db_now() AS now").fetchall()
        until(
            lambda since=now["now"]: all(  # type: ignore[misc]
                moment > since for name, moment in finished(around).items() if name in SWEEPS
            ),
            10,
            f"every sweep to go on after: {kind}",
        )
        _ready, parts = app.readiness()
        assert parts["scheduler"][0], (kind, parts)
    rows = around.rows("SELECT id FROM scheduler.apscheduler_jobs")
    assert {row["id"] for row in rows} >= SWEEPS
    until(lambda: app.readiness()[0], 10, lambda: str(app.readiness()[1]))
