"""The embedded database is killed under the product, which brings it back by itself."""

from __future__ import annotations

from pathlib import Path

from peers.events import build_event
from tests.db.embedded_ground import kill_postmaster
from tests.running import RunningApp, surroundings, until

WITHIN_S = 60.0
EMBEDDED = {"NOTIFIER_DATABASE_URL": ""}


def postmaster(folder: Path) -> int:
    return int((folder / "postgres/server/data/postmaster.pid").read_text().split()[0])


def test_a_killed_embedded_database_is_started_again_and_everything_goes_on(
    tmp_path: Path,
) -> None:
    with surroundings("", tmp_path) as around:
        with RunningApp(around, more=EMBEDDED) as app:
            before = app.admit(build_event())
            assert app.readiness()[1]["postgres"] == (True, "runs")
            assert "ok    postgres: runs" in app.flask("doctor").stdout

            kill_postmaster(postmaster(tmp_path))

            until(lambda: "died 1 times" in told(app), WITHIN_S, lambda: app.log[-3000:])
            until(lambda: app.readiness()[0], WITHIN_S, lambda: str(app.readiness()))
            assert app.settled(before)["state"] == "complete"
            assert app.settled(app.admit(build_event()))["state"] == "complete"
            assert "postgres_died" in app.log
            assert "postgres_started_again" in app.log
        said = app.flask("doctor").stdout
        assert "ok    postgres: was not running; started for this command" in said


def told(app: RunningApp) -> str:
    return app.readiness()[1].get("postgres", (False, ""))[1]
