"""The limit of an alert that stands, while the tokens' life that limits are taken from moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notifier.domain.policy import parse_policy
from notifier.flow.policies import PolicyShelf, keep
from notifier.signals.judging import Judge
from tests.database import Clock
from tests.db.rig import Rig, Row
from tests.signals.conftest import Collect
from tests.signals.receivers import Webhook, webhook
from tests.signals.test_alert_path import judge_of, look, send_due

SHORT_S, LONG_S = 240.0, 3_000.0
"""Ready work may become 24 s old under the one, 60 s under the other."""


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as started:
        yield started


def episode(rig: Rig) -> Row:
    return rig.one("SELECT * FROM alert_episode WHERE rule = 'queue_age'")


def admit_many(rig: Rig, life_s: float) -> None:
    """So many of one life that it is learnt, whatever was admitted before."""
    for _ in range(24):
        rig.admit(life_s=life_s)


def until_open(rig: Rig, judge: Judge, clock: Clock) -> Row:
    for _ in range(40):
        look(rig, judge, clock)
        if rig.rows("SELECT FROM alert_episode WHERE state = 'open'"):
            break
    return episode(rig)


def nothing_is_ready(rig: Rig) -> None:
    with rig.database.connection() as connection:
        connection.execute("UPDATE delivery SET due_at = due_at + interval '1 day'")


def test_an_open_alert_keeps_the_limit_that_was_told_when_the_learnt_life_grows(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    judge = judge_of(rig, hook)
    rig.admit(life_s=SHORT_S)
    opened = until_open(rig, judge, clock)
    send_due(rig, hook)
    assert (opened["threshold"], opened["life_s"]) == (24.0, SHORT_S)
    assert f"{opened['value']:.0f} s of waiting, limit 24 s." in hook.taken[0]["message"]

    admit_many(rig, LONG_S)
    look(rig, judge, clock)
    now = episode(rig)
    assert judge.limits().queue_age_s == 60.0
    assert opened["value"] < now["value"] < 48.0
    assert (now["threshold"], now["threshold_now"], now["clear_since"]) == (24.0, 24.0, None)

    nothing_is_ready(rig)
    for _ in range(26):
        look(rig, judge, clock)
        send_due(rig, hook)
    assert hook.titles[1:] == ["Over: Ready work waits too long (email)"]
    assert ", limit 24 s." in hook.taken[1]["message"]


def test_an_open_alert_is_not_over_while_the_limit_by_now_is_crossed(
    rig: Rig, collect: Collect, clock: Clock, hook: Webhook
) -> None:
    judge = judge_of(rig, hook)
    admit_many(rig, LONG_S)
    opened = until_open(rig, judge, clock)
    assert (opened["state"], opened["threshold"]) == ("open", 60.0)

    nothing_is_ready(rig)
    look(rig, judge, clock)
    assert episode(rig)["clear_since"] is not None
    admit_many(rig, SHORT_S)
    for _ in range(6):
        look(rig, judge, clock)
    now = episode(rig)
    assert (now["value"], now["threshold"], now["clear_since"]) == (30.0, 60.0, None)


@pytest.mark.parametrize(
    ("changed", "limit", "is_clear"),
    [
        ({"queue_age_s": 200.0, "queue_age_share": 0.15}, 150.0, True),
        ({"queue_age_s": 30.0}, 30.0, False),
    ],
    ids=["looser", "tighter"],
)
def test_a_limit_that_was_changed_by_hand_holds_at_once_and_is_told_beside_the_old_one(
    rig: Rig,
    collect: Collect,
    clock: Clock,
    changed: dict[str, float],
    limit: float,
    is_clear: bool,
) -> None:
    judge = judge_of(rig)
    rig.admit(life_s=1_000)
    assert until_open(rig, judge, clock)["threshold"] == 60.0
    keep(
        rig.database,
        parse_policy({"alert": changed}),
        base=1,
        author="ada",
        reason="Deploys take as long",
    )
    look(rig, Judge(PolicyShelf(rig.database), "another", lambda _: 5.0), clock)
    now = episode(rig)
    assert (now["threshold"], now["threshold_now"]) == (60.0, limit)
    assert (now["clear_since"] is not None) is is_clear
