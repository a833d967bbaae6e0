"""One notice that cannot be worked on holds nobody else up."""

from __future__ import annotations

import signal

from peers.events import build_event
from tests.chaos.conftest import Run, Surround
from tests.running import until


def test_a_locked_notice_does_not_keep_others_from_expiring_or_being_rescued(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    app, second = run(around), run(around, name="second")
    doomed = [build_event(fate="mail:hold", life_s=60.0) for _ in range(3)]
    dying = [build_event(fate="link:unavailable", life_s=4.0) for _ in range(3)]
    for event in doomed:
        second.admit(event)
    around.inbox.wait_for(count=3, phase="held")
    for event in dying:
        app.admit(event)
        until(lambda e=event: app.email(e["event_id"])["state"] == "queued", 5)  # type: ignore[misc]

    with around.locked(doomed[0], dying[0]):  # the first ones that the sweeps will meet
        second.signal(signal.SIGKILL, group=True)
        second.wait_until_gone()
        for event in dying[1:]:
            assert app.settled(event["event_id"], within_s=25)["state"] == "expired"
        for event in doomed[1:]:
            assert app.wait_for_email(event["event_id"], "unknown", "accepted", within_s=25)
        # A sweep that leaves a notice behind has no good run, and shows once that is old.
        until(lambda: not app.readiness()[0], 20, "the sweeps to show as failing")
        _, parts = app.readiness()
        assert any("failing: LockNotAvailable" in detail for _, detail in parts.values()), parts

    assert app.settled(dying[0]["event_id"])["state"] == "expired"
    app.wait_for_email(doomed[0]["event_id"], "unknown", "accepted")
    until(lambda: app.readiness()[0], 20, lambda: f"ready: {app.readiness()[1]}")
