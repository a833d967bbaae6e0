"""Two hosts whose clocks are wrong by minutes, one either way: only the database's counts."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta
from pathlib import Path

from peers.events import Event, build_event
from tests.chaos.conftest import Run, Surround
from tests.chaos.test_scheduler_rows import SWEEPS, finished
from tests.running import RunningApp, Surroundings, until

WRONG_BY_S = 420.0
"""More than the five minutes by which a signature's time may differ."""
SHORT_LIFE_S = 6.0
SITE = Path(__file__).with_name("skewed")


def clock_wrong_by(seconds: float) -> dict[str, str]:
    return {"PYTHONPATH": str(SITE), "CLOCK_WRONG_BY_S": str(seconds)}


def log_time_of(app: RunningApp) -> str:
    """The newest wall time that the process wrote into its log."""
    return max(line.split('"')[3] for line in app.log.splitlines() if line.startswith('{"time'))


def expired_in_time(around: Surroundings, event: Event) -> bool:
    """Whether the delivery was closed between its stop time and a moment after its expiry."""
    (row,) = around.rows(
        "SELECT d.changed_at BETWEEN d.stop_at AND d.expires_at + interval '20 s' AS in_time"
        "  FROM delivery d JOIN notice USING (notice_id)"
        " WHERE event_id = %s AND channel = 'email'",
        event["event_id"],
    )
    return bool(row["in_time"])


def test_p5_p9_a_hosts_own_clock_decides_nothing(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    behind = run(around, name="behind", more=clock_wrong_by(-WRONG_BY_S))
    ahead = run(around, name="ahead", more=clock_wrong_by(WRONG_BY_S))
    assert_apart(behind, ahead)
    assert "this process leads" in behind.readiness()[1]["leader"][1]

    sent, dying = [], []
    for app in (behind, ahead):
        for _ in range(4):
            sent.append(build_event())
            app.admit(sent[-1])
        dying.append(build_event(fate="link:unavailable", life_s=SHORT_LIFE_S))
        app.admit(dying[-1])
    for event in sent:
        assert behind.settled(event["event_id"])["state"] == "complete"
        assert len(around.mails(event)) == 1
    for event in dying:
        assert ahead.settled(event["event_id"])["state"] == "expired"
        assert expired_in_time(around, event)
        assert around.mails(event) == []

    assert_sweeps_go_on_under(ahead, after=behind)
    after = build_event()
    assert ahead.settled(ahead.admit(after))["state"] == "complete"
    assert len(around.mails(after)) == 1


def assert_apart(behind: RunningApp, ahead: RunningApp) -> None:
    """The wall clocks are wrong indeed, or the test would show nothing."""
    apart = datetime.fromisoformat(log_time_of(ahead)) - datetime.fromisoformat(log_time_of(behind))
    assert apart > timedelta(seconds=WRONG_BY_S)


def assert_sweeps_go_on_under(app: RunningApp, *, after: RunningApp) -> None:
    """The scheduler's rows of a leader minutes behind do not make its successor wait or burst."""
    after.signal(signal.SIGTERM)
    after.wait_until_gone()
    with app.around.connection() as connection:
        (now,) = connection.execute("SELECT db_now() AS now").fetchall()
    until(
        lambda: all(finished(app.around)[name] > now["now"] for name in SWEEPS),
        30,
        "every sweep to run under the other clock",
    )
