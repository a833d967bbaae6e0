"""From work that stands still to a page that somebody received, and to its end."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta

import pytest
from pydantic import SecretStr

from notifier.domain.outcome import Accepted
from notifier.flow.alerts import AlertMoved, Alerts, LedToAction, Verdict
from notifier.logs import configure_logs
from notifier.signals.apprise_pager import AppriseReceiver, receivers_of
from notifier.signals.judging import Judge
from notifier.signals.paging import Outbox
from notifier.store import alerts
from notifier.store.ledger import pauses
from notifier.store.reads.alerts import AlertFilter, load_alerts, load_open, load_rules, load_story
from notifier.store.reads.paging import Walk
from peers.testing import running_inbox
from tests.database import Clock
from tests.db.rig import Rig
from tests.db.waiting import together
from tests.signals.conftest import Collect
from tests.signals.receivers import Webhook, webhook

BASE = "https://notices.example.com"


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as started:
        yield started


def judge_of(rig: Rig, *receivers: Webhook, owner: str = "judge") -> Judge:
    names = [each.receiver.name for each in receivers]
    return Judge(rig.shelf, owner, lambda _: 5.0, receivers=names)


def look(rig: Rig, judge: Judge, clock: Clock, *, after_s: float = 5.0) -> bool:
    """Let time pass and a turn be taken, as every process does."""
    clock.advance(after_s)
    with rig.database.connection() as connection:
        return judge.take_turn(connection)


def send_due(rig: Rig, *hooks: Webhook) -> None:
    send_to(rig, *(each.receiver for each in hooks))


def send_to(rig: Rig, *receivers: AppriseReceiver) -> None:
    box = Outbox(rig.database, receivers, BASE)
    with rig.database.connection() as connection:
        for thread in box.start_due(connection):
            thread.join(30)


def stand_still(rig: Rig, judge: Judge, clock: Clock) -> None:
    """Admit one that nobody sends, and wait until it is told."""
    rig.admit()
    for _ in range(16):
        look(rig, judge, clock)
    assert rig.one("SELECT state FROM alert_episode WHERE rule = 'queue_age'")["state"] == "open"


def pages(rig: Rig) -> list[tuple[str, bool, int]]:
    rows = rig.rows("SELECT kind, sent_at, tries FROM alert_page ORDER BY made_at, kind")
    return [(row["kind"], row["sent_at"] is not None, row["tries"]) for row in rows]


def test_p11_work_that_waits_too_long_is_told_once_and_its_end_too(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    judge = judge_of(rig, hook)
    rig.admit()
    for _ in range(24):
        assert look(rig, judge, clock)
        send_due(rig, hook)

    assert hook.titles == ["Ready work waits too long (email)"]
    [page] = hook.taken
    assert "70 s of waiting, limit 60 s" in page["message"]
    assert "Affected: 1 notice." in page["message"]
    assert f"See: {BASE}/pending?stage=waiting" in page["message"]
    assert f"Runbook: {BASE}/runbooks/queue_age" in page["message"]

    rig.record(rig.start(), Accepted("id-1"))
    look(rig, judge, clock)
    well = f"{rig.now():%H:%M:%S} UTC."
    for _ in range(69):
        look(rig, judge, clock)
        send_due(rig, hook)
    assert hook.titles[1:] == ["Over: Ready work waits too long (email)"]
    assert f"to 2026-03-01 {well}" in hook.taken[1]["message"]
    episode = rig.one("SELECT * FROM alert_episode WHERE rule = 'queue_age'")
    assert episode["state"] == "resolved"
    assert episode["worst"] >= 120
    assert episode["opened_at"] - episode["crossed_at"] <= timedelta(seconds=15)


def test_p11_a_pause_is_told_with_its_reason_and_counts_from_the_first_refusal_of_a_row(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    judge = judge_of(rig, hook)
    for _ in range(8):
        with rig.database.connection() as connection:
            pauses.pause(connection, provider="postmark", detail="auth_error", seconds=12)
        for _ in range(3):
            look(rig, judge, clock)
            send_due(rig, hook)
    [page] = hook.taken
    assert "s of pause (auth_error), limit 10 s." in page["message"]
    episode = rig.one("SELECT * FROM alert_episode WHERE rule = 'provider_paused'")
    assert episode["worst"] >= 100

    for _ in range(70):
        look(rig, judge, clock)
        send_due(rig, hook)
    assert f"Worst: {episode['worst']:.0f} s of pause (auth_error)" in hook.taken[1]["message"]


def test_p11_of_many_processes_one_judges_and_one_episode_is_opened(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    judges = [judge_of(rig, hook, owner=f"process-{number}") for number in range(4)]
    rig.admit()
    took = 0
    for _ in range(16):
        clock.advance(5)

        def turn(judge: Judge) -> bool:
            with rig.database.connection() as connection:
                return judge.take_turn(connection)

        took += sum(together(*(lambda judge=each: turn(judge) for each in judges)))
    assert took == 16
    assert rig.one("SELECT count(*) AS n FROM alert_episode WHERE state = 'open'")["n"] == 1
    assert pages(rig) == [("opened", False, 0)]


def test_a_judge_that_wakes_after_another_took_its_turn_writes_nothing(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rig.database.connection() as connection:
        frozen = alerts.take_turn(connection, owner="frozen", every_s=5)
        assert frozen is not None
        clock.advance(6)
        assert alerts.take_turn(connection, owner="next", every_s=5) == frozen + 1
        with connection.transaction():
            assert not alerts.holds_turn(connection, frozen)
            assert alerts.holds_turn(connection, frozen + 1)

        monkeypatch.setattr(alerts, "take_turn", lambda *_, **__: frozen)
        assert not judge_of(rig, hook).take_turn(connection)


def test_a_dead_receiver_delays_nobody_and_is_tried_again(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    with webhook() as broken:
        broken.answers = 500
        stand_still(rig, judge_of(rig, hook, broken), clock)
        send_due(rig, hook, broken)
        assert hook.titles == ["Ready work waits too long (email)"]
        assert sorted(pages(rig)) == [("opened", False, 1), ("opened", True, 1)]

        broken.answers = 200
        send_due(rig, hook, broken)
        assert broken.taken == []
        clock.advance(6)
        send_due(rig, hook, broken)
        assert broken.titles == hook.titles == ["Ready work waits too long (email)"]


def test_the_end_is_told_after_the_beginning_to_each_receiver(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    judge = judge_of(rig, hook)
    hook.answers = 500
    stand_still(rig, judge, clock)
    send_due(rig, hook)
    rig.record(rig.start(), Accepted("id-1"))
    for _ in range(70):
        look(rig, judge, clock)
    hook.answers = 200
    send_due(rig, hook)
    send_due(rig, hook)
    assert hook.titles == [
        "Ready work waits too long (email)", "Over: Ready work waits too long (email)",
    ]  # fmt: skip


def test_a_page_whose_sender_died_is_sent_by_another(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    stand_still(rig, judge_of(rig, hook), clock)
    with rig.database.connection() as connection:
        names = [hook.receiver.name]
        assert alerts.claim_pages(connection, names, lease=timedelta(seconds=60))
    send_due(rig, hook)
    assert hook.taken == []
    clock.advance(61)
    send_due(rig, hook)
    assert len(hook.taken) == 1


def test_a_real_mail_server_is_told_as_well(rig: Rig, collect: Collect, clock: Clock) -> None:
    with running_inbox() as inbox:
        where = f"127.0.0.1:{inbox.smtp_port}"
        url = f"mailto://{where}?from=alerts@example.com&to=oncall@example.com&mode=insecure"
        mail = AppriseReceiver(SecretStr(url))
        judge = Judge(rig.shelf, "judge", lambda _: 5.0, receivers=[mail.name])
        stand_still(rig, judge, clock)
        send_to(rig, mail)
        [told] = inbox.messages("oncall@example.com")
    assert told["subject"] == "Ready work waits too long (email)"
    assert f"Runbook: {BASE}/runbooks/queue_age" in told["text"]


def test_p7_an_address_that_takes_nothing_is_told_of_without_its_secret(
    rig: Rig, collect: Collect, clock: Clock
) -> None:
    said = io.StringIO()
    configure_logs(said, as_json=True)
    url = SecretStr("json://127.0.0.1:1/hook-t0k3n-in-the-address")
    odd = SecretStr("no-such-scheme://s3cr3t@nowhere")
    receivers = receivers_of([url, odd, url])
    assert len(receivers) == 2
    judge = Judge(rig.shelf, "judge", lambda _: 5.0, receivers=[each.name for each in receivers])
    stand_still(rig, judge, clock)
    send_to(rig, *receivers)
    configure_logs()
    assert {row["trouble"] for row in rig.rows("SELECT trouble FROM alert_page")} == {
        "not_taken", "not_an_address",
    }  # fmt: skip
    shown = said.getvalue() + repr(receivers) + str(rig.rows("SELECT * FROM alert_page"))
    assert "page_not_taken" in shown
    assert "t0k3n" not in shown
    assert "s3cr3t" not in shown


def test_an_alert_is_owned_noted_ended_and_reviewed(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    judge = judge_of(rig, hook)
    stand_still(rig, judge, clock)
    acts = Alerts(rig.database)
    with rig.database.connection() as connection:
        [seen] = load_open(connection)
    clock.advance(30)
    acts.acknowledge(seen.episode_id, version=seen.version, by="ann", note="Looking")
    with pytest.raises(AlertMoved):
        acts.acknowledge(seen.episode_id, version=seen.version, by="bob")
    acts.unacknowledge(seen.episode_id, version=seen.version + 1, by="ann")
    acts.acknowledge(seen.episode_id, version=seen.version + 2, by="bob")
    acts.note(seen.episode_id, text="The relay was full", by="bob")
    with pytest.raises(AlertMoved):
        acts.review(
            seen.episode_id, version=seen.version + 3, by="bob",
            led_to_action=LedToAction.YES, what=None, verdict=Verdict.KEEP,
        )  # fmt: skip
    acts.resolve(seen.episode_id, version=seen.version + 3, by="bob", note="Emptied the relay")
    acts.review(
        seen.episode_id, version=seen.version + 4, by="bob", led_to_action=LedToAction.PARTLY,
        what="Restarted the senders", verdict=Verdict.TUNE,
    )  # fmt: skip

    with rig.database.connection() as connection:
        story = load_story(connection, seen.episode_id)
        assert story is not None
        [record] = load_rules(connection, 30)
        listed = load_alerts(connection, Walk(), AlertFilter(state="resolved", owner="bob"))
        none = load_alerts(connection, Walk(), AlertFilter(unreviewed=True))
    assert [note.text for note in story.notes] == ["gave it back", "The relay was full"]
    assert [page.kind for page in story.pages] == ["opened", "resolved"]
    assert (story.alert.resolved_by, story.alert.review_verdict) == ("bob", "tune")
    assert (record.fired, record.acknowledged, record.action_share) == (1, 1, 0.5)
    assert record.median_ack_s == 40.0
    assert [each.episode_id for each in listed.rows] == [seen.episode_id]
    assert none.rows == ()
