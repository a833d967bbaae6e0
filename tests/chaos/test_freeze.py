"""A process that stands still past its leases and then goes on as if nothing had been."""

from __future__ import annotations

import signal

from peers.events import Event, build_event
from tests.chaos.conftest import Run, Surround
from tests.running import RunningApp, Surroundings, until

HELD = 4


def owned_by(around: Surroundings, app: RunningApp) -> set[str]:
    """The events that the process has in hand."""
    pids = {str(pid) for pid in app.child_pids()}
    rows = around.rows(
        "SELECT event_id, lease_owner FROM delivery JOIN notice USING (notice_id)"
        " WHERE lease_owner IS NOT NULL"
    )
    return {row["event_id"] for row in rows if row["lease_owner"].split(":")[1] in pids}


def test_p9_a_leader_frozen_past_its_leases_is_succeeded_and_sends_nothing_late(
    database_url: str, surround: Surround, run: Run
) -> None:
    around = surround(database_url)
    sleeper = run(around, name="sleeper", more={"NOTIFIER_WORKERS": str(2 * HELD)})
    awake = run(around, name="awake", more={"NOTIFIER_WORKERS": str(HELD)})
    term = leading(sleeper)
    linking = [build_event(fate="link:hold") for _ in range(2 * HELD)]
    calling = [build_event(fate="mail:hold") for _ in range(HELD)]
    for event in calling:
        sleeper.admit(event)
    around.inbox.wait_for(count=HELD, phase="held")
    for event in linking:
        sleeper.admit(event)
    around.auth.wait_for(count=2 * HELD, phase="held")

    frozen = owned_by(around, sleeper)
    sleeper.signal(signal.SIGSTOP, group=True)
    for event in linking:
        around.auth.script(reset_request_id=event["reset_request_id"])
    around.auth.release()
    around.inbox.release()

    asleep_linking = [e for e in linking if e["event_id"] in frozen]
    asleep_calling = [e for e in calling if e["event_id"] in frozen]
    assert asleep_linking, "the frozen process held no claim"
    assert asleep_calling, "the frozen process held no call"
    # Taking its work back is the leader's part, and it is the leader that sleeps.
    until(lambda: leading(awake) == term + 1, 60, lambda: str(awake.readiness()))
    for event in linking:
        assert awake.settled(event["event_id"])["state"] == "complete"
    for event in asleep_calling:
        email = awake.wait_for_email(event["event_id"], "unknown")
        assert email["reason"] == "worker_lost"

    sleeper.signal(signal.SIGCONT, group=True)

    for event in asleep_calling:  # its late answer is a fact
        email = awake.wait_for_email(event["event_id"], "accepted")
        assert email["reason"] == "late_answer"
    until(lambda: not owned_by(around, sleeper), 10, "the late process to let go")
    after = build_event()
    sleeper.settled(sleeper.admit(after))
    for event in (*linking, *calling, after):
        assert len(around.mails(event)) == 1
        assert len(awake.email(event["event_id"])["attempts"]) == 1
    assert_refused_by_the_fence(awake, asleep_linking)
    assert (leading(sleeper), leading(awake)) == (0, term + 1), "the late leader led on"


def leading(app: RunningApp) -> int:
    """The term in which the process leads; 0 while it does not."""
    told = app.readiness()[1].get("leader", (False, ""))[1]
    return int(told.rpartition(" ")[2]) if told.startswith("this process leads") else 0


def assert_refused_by_the_fence(app: RunningApp, events: list[Event]) -> None:
    """The late intents left no attempt, and the claims were taken back exactly once."""
    for event in events:
        reasons = app.reasons(event["event_id"])
        assert reasons.count("lease_expired") == 1
        assert reasons.count("attempt_started") == 1
