"""P11: the alerting path works where the sender, the leader or the database is dead."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from notifier.logs import configure_logs
from notifier.signals.deadman import Deadman
from notifier.signals.judgements import RuleName
from notifier.signals.judging import Judge
from notifier.signals.outage import Outage
from notifier.signals.paging import Outbox
from notifier.signals.watch import Watch, watch_database
from notifier.store.database import Database
from peers.events import build_event
from tests.database import Clock
from tests.db.rig import Rig
from tests.ports import port_to_bind
from tests.running import SHORT_TIMES, RunningApp, surroundings, until
from tests.signals.conftest import Collect
from tests.signals.receivers import Webhook, webhook

BASE = "https://notices.example.com"
SHORT_LIVED = SHORT_TIMES.replace("[safety_margin_s]", "[alert]\nlife_s = 20\n\n[safety_margin_s]")
WITHIN_S = 60.0


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as started:
        yield started


def watch_over(rig: Rig, database: Database, hook: Webhook) -> Watch:
    judge = Judge(rig.shelf, "judge", lambda _: 5.0, receivers=[hook.receiver.name])
    receivers = [hook.receiver]
    return Watch(
        database,
        judge,
        Outbox(database, receivers, BASE),
        unreachable=Outage(RuleName.DATABASE_UNREACHABLE, receivers, BASE, "this process"),
        unjudged=Outage(RuleName.RULES_NOT_JUDGED, receivers, BASE, "this process"),
    )


@pytest.fixture
def brief(database: Database) -> Rig:
    """Where tokens live for a second, so that the watch waits for next to nothing."""
    return Rig(database, policy={"alert": {"life_s": 1}})


def watched(rig: Rig) -> Database:
    return watch_database(rig.database.url, "test_clock,notifier")


def test_p11_a_process_without_workers_tells_that_nobody_sends(
    database_url: str, tmp_path: Path, hook: Webhook
) -> None:
    more = {
        "NOTIFIER_WORKERS": "0",
        "NOTIFIER_ALERT_URLS": hook.url,
        "NOTIFIER_DEADMAN_URL": f"http://127.0.0.1:{hook.port}/alive",
    }
    with (
        surroundings(database_url, tmp_path, policy=SHORT_LIVED, more=more) as around,
        RunningApp(around) as app,
    ):
        app.admit(build_event())
        until(lambda: hook.titles, WITHIN_S, lambda: app.log[-4000:])
        assert hook.titles == ["Ready work waits too long (email)"]
        assert f"{app.base_url}/runbooks/queue_age" in hook.taken[0]["message"]
        assert f"Take it in hand: {app.base_url}/alerts/" in hook.taken[0]["message"]
        assert hook.asked == ["/alive"]
        assert "t0k3n" not in app.log


def test_p11_a_database_that_cannot_be_reached_is_told_once_and_its_return_too(
    brief: Rig, hook: Webhook
) -> None:
    gone = Database(f"postgresql://nobody@127.0.0.1:{port_to_bind()}/none", acquire_timeout_s=0.1)
    watch = watch_over(brief, gone, hook)

    def told(*titles: str) -> bool:
        watch.pass_once()
        return hook.titles == list(titles)

    until(lambda: told("The database cannot be reached"), WITHIN_S)
    for _ in range(3):
        assert told("The database cannot be reached")
    assert "this process" in hook.taken[0]["message"]
    assert f"{BASE}/runbooks/database_unreachable" in hook.taken[0]["message"]

    watch.database = watched(brief)
    until(
        lambda: told("The database cannot be reached", "Over: The database cannot be reached"),
        WITHIN_S,
    )
    watch.stop()
    gone.close()


def test_p11_rules_that_nobody_judges_are_told_although_the_database_answers(
    brief: Rig, hook: Webhook
) -> None:
    brief.run("ALTER TABLE alert_episode RENAME TO out_of_the_way")
    watch = watch_over(brief, watched(brief), hook)
    try:

        def told() -> list[str]:
            watch.pass_once()
            return hook.titles

        until(lambda: told() == ["The alert rules are not judged"], WITHIN_S)
    finally:
        brief.run("ALTER TABLE out_of_the_way RENAME TO alert_episode")
    until(lambda: told()[1:] == ["Over: The alert rules are not judged"], WITHIN_S)
    watch.stop()


def test_p11_rules_that_were_last_judged_long_ago_are_told(
    brief: Rig, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watch_over(brief, watched(brief), hook)
    monkeypatch.setattr(watch.judge, "take_turn", lambda _connection: False)
    brief.run("INSERT INTO alert_watch DEFAULT VALUES ON CONFLICT DO NOTHING")
    brief.run("UPDATE alert_watch SET judged_at = db_now() - interval '1 hour'")

    def told() -> list[str]:
        watch.pass_once()
        return hook.titles

    until(lambda: told() == ["The alert rules are not judged"], WITHIN_S)
    watch.stop()


def test_the_ping_stops_while_no_receiver_takes_a_page(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    watch = watch_over(rig, watched(rig), hook)
    watch.deadman = Deadman(SecretStr(f"http://127.0.0.1:{hook.port}/alive"))
    rig.admit()
    clock.advance(6)
    watch.pass_once()
    until(lambda: hook.asked == ["/alive"], WITHIN_S)

    hook.answers = 500
    for _ in range(44):
        clock.advance(5)
        watch.pass_once()
    hook.asked.clear()
    watch._pinged_at = None
    watch.pass_once()
    assert watch._pinged_at is None
    assert hook.asked == []

    hook.answers = 200
    clock.advance(600)
    watch.pass_once()
    until(lambda: hook.titles == ["Ready work waits too long (email)"], WITHIN_S)
    clock.advance(6)
    watch.pass_once()
    until(lambda: hook.asked == ["/alive"], WITHIN_S)
    watch.stop()


def test_the_ping_follows_nothing_and_keeps_its_address_to_itself(hook: Webhook) -> None:
    said = io.StringIO()
    configure_logs(said, as_json=True)
    deadman = Deadman(SecretStr(f"http://127.0.0.1:{hook.port}/t0k3n"))
    assert deadman.ping()
    hook.answers = 302
    assert not deadman.ping()
    assert hook.asked == ["/t0k3n", "/t0k3n"]
    assert not Deadman(SecretStr(f"http://127.0.0.1:{port_to_bind()}/t0k3n")).ping()
    configure_logs()
    assert "deadman_not_pinged" in said.getvalue()
    assert "t0k3n" not in said.getvalue()
