"""The chaos run's short form: every promise of the long one, on a few dozen people."""

from __future__ import annotations

from tests.chaos_run import verdict
from tests.chaos_run.ground import breakable
from tests.chaos_run.plan import SHORT_LIVES, Plan
from tests.chaos_run.run import run, through_plain

SHORT = Plan(
    events=60,
    kills=3,
    restarts=1,
    processes=2,
    seed=7,
    link_faulty=0.0,
    aim_s=10.0,
    lives=SHORT_LIVES,
)


def test_p9_a_short_chaos_run_keeps_every_promise() -> None:
    report = run(SHORT, beside=False)

    assert report.holds, report.text()


def test_a_plain_retrying_worker_doubles_messages_under_the_same() -> None:
    with breakable() as arena:
        course, _left = through_plain(SHORT, arena)

    assert len(course.havoc.senders.told.identity) == SHORT.events
    assert len(course.havoc.kills) == SHORT.kills
    assert len(verdict.duplicates(course.seen["email"]))
