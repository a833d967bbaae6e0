"""The database goes away and comes back, in order or not; the product goes on by itself."""

from __future__ import annotations

import http.client
import threading
from collections import Counter

from peers.events import Event, build_event
from tests.chaos.conftest import Cluster, Run, Surround
from tests.running import SHORT_TIMES, RunningApp, until

PATIENT = SHORT_TIMES.replace("email = 1.5", "email = 8.0")
BACK_WITHIN_S = 20.0
KILLS = 4
EVENTS = 200


def test_sending_and_sweeps_resume_by_themselves_after_a_stop(
    cluster: Cluster, fragile_url: str, surround: Surround, run: Run
) -> None:
    around = surround(fragile_url, policy=PATIENT)
    app = run(around)
    asked = build_event(fate="mail:hold")
    in_doubt = build_event(fate="mail:drop-after-dot", life_s=9.0)
    dying = build_event(fate="link:unavailable", life_s=4.0)
    for event in (in_doubt, dying, asked):
        app.admit(event)
    app.wait_for_email(in_doubt["event_id"], "unknown")
    around.inbox.wait_for(phase="held", recipient=asked["destinations"]["email"])

    cluster.stop()
    around.inbox.release()  # the answer comes while there is nowhere to write it
    until(
        lambda: not app.readiness()[1].get("database", (True,))[0],
        10,
        lambda: f"readiness to name the database: {app.readiness()[1]}",
    )
    refused = app.post(build_event())
    assert (refused.status, refused.json()["code"]) == (503, "not_admitted")
    assert int(refused.headers["retry-after"]) > 0
    assert app._get("/healthz") == {"live": True}
    until(
        lambda: not app.readiness()[1].get("outcomes", (True,))[0],
        10,
        lambda: f"an outcome to wait: {app.readiness()}" + app.log[-9000:],
    )
    cluster.start()

    until(lambda: app.readiness()[0], BACK_WITHIN_S, lambda: f"ready: {app.readiness()[1]}")
    assert app.wait_for_email(asked["event_id"], "accepted")["reason"] in {
        "provider_accepted",
        "late_answer",
    }
    after = build_event()
    assert app.settled(app.admit(after))["state"] == "complete"
    assert app.settled(in_doubt["event_id"])["state"] == "expired"
    assert app.email(in_doubt["event_id"])["reason"] == "unknown_at_expiry"
    assert app.settled(dying["event_id"])["state"] == "expired"
    assert around.mails(dying) == []
    for event in (asked, in_doubt, after):
        assert len(around.mails(event)) == 1


def post_through(app: RunningApp, events: list[Event], told: dict[str, int | None]) -> None:
    """Post each event once; None where no answer came."""
    for event in events:
        try:
            told[event["event_id"]] = app.post(event).status
        except (OSError, http.client.HTTPException):
            told[event["event_id"]] = None


def meet_an_outage(app: RunningApp, cluster: Cluster, told: dict[str, int | None]) -> list[Event]:
    """An event posted while the database is away, where the four kills happened to meet none."""
    if set(told.values()) != {202}:
        return []
    cluster.kill()
    events = [build_event()]
    post_through(app, events, told)
    cluster.start()
    return events


def test_p2_every_202_outlives_a_database_that_is_killed_again_and_again(
    cluster: Cluster, fragile_url: str, surround: Surround, run: Run
) -> None:
    around = surround(fragile_url)
    app = run(around)
    events = [build_event() for _ in range(EVENTS)]
    told: dict[str, int | None] = {}
    parts = [events[n::4] for n in range(4)]
    threads = [threading.Thread(target=post_through, args=(app, part, told)) for part in parts]
    for thread in threads:
        thread.start()
    for kill in range(1, KILLS + 1):
        share = EVENTS * kill // (KILLS + 1)
        until(lambda share=share: len(told) >= share, 60, "events to be posted")  # type: ignore[misc]
        cluster.kill()
        cluster.start()
    for thread in threads:
        thread.join()
    events += meet_an_outage(app, cluster, told)

    counts = Counter(told.values())
    assert set(counts) <= {202, 503, None}, counts
    assert counts[202] > 0
    assert counts[503] + counts[None] > 0, "no event met the outage"
    admitted = {row["event_id"] for row in around.rows("SELECT event_id FROM admission")}
    assert {event_id for event_id, status in told.items() if status == 202} <= admitted

    until(lambda: app.readiness()[0], BACK_WITHIN_S, lambda: f"ready: {app.readiness()[1]}")
    for event in events:  # the sender asks again where it was told nothing or 503
        if told[event["event_id"]] != 202:
            app.admit(event)
    for event in events:
        email = app.wait_for_email(event["event_id"], "accepted", "unknown", within_s=40)
        mails = len(around.mails(event))
        assert mails == 1 if email["state"] == "accepted" else mails <= 1
        if email["state"] == "unknown":
            assert email["reason"] in {"worker_lost", "timeout"}
    assert max(Counter(around.stored()).values()) == 1
