"""Judgements over time: one episode, one page at its beginning and one at its end (case B138)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from graphlib import TopologicalSorter

from notifier.signals.causes import EXPLAINS, OF_ONE_SWEEP
from notifier.signals.episodes import Change, Move, as_opened, decide
from notifier.signals.judgements import Judged, Judgement, Level, RuleName
from notifier.signals.thresholds import Unit
from notifier.store.alerts import Standing
from notifier.sweeps.jobs import TICKS

BEGIN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CLOSE_AFTER = timedelta(minutes=5)
LIFE_S = 600.0


def judgement(
    rule: RuleName, key: str = "", *, level: Level = Level.ABOVE, hold_s: float = 0.0
) -> Judgement:
    value = {Level.ABOVE: 2.0, Level.BETWEEN: 0.9, Level.CLEAR: 0.0}[level]
    return Judgement(rule, key, level, value, 1.0, Unit.COUNT, 1, hold_s)


@dataclass
class Course:
    """What stands, as the store would keep it, and every beginning and end that was told."""

    standing: dict[tuple[str, str], Standing] = field(default_factory=dict)
    told: list[tuple[str, str, float]] = field(default_factory=list)
    now: datetime = BEGIN

    def look(
        self, *judgements: Judgement, unmeasured: Iterable[RuleName] = (), after_s: float = 5.0
    ) -> None:
        self.now += timedelta(seconds=after_s)
        judged = Judged(judgements, frozenset(unmeasured))
        for change in decide(list(self.standing.values()), judged, self.now, lambda _: CLOSE_AFTER):
            self._keep(change)

    def _keep(self, change: Change) -> None:
        place = (str(change.rule), change.key)
        if change.move in {Move.OPEN, Move.RESOLVE}:
            self.told.append((change.move, place[0], (self.now - BEGIN).total_seconds()))
        if change.move in {Move.DROP, Move.RESOLVE}:
            del self.standing[place]
        elif change.clear_since:
            self.standing[place] = replace(self.standing[place], clear_since=change.clear_since)
        elif change.judgement:
            state = "held" if change.move is Move.HOLD else "open"
            self.standing[place] = Standing(
                uuid.uuid4(), *place, state, change.crossed_at, None, self.now, None,
                change.judgement.value, change.judgement.value, 1.0, "count", 1, LIFE_S,
            )  # fmt: skip


def test_a_crossing_is_told_once_it_has_stood_for_its_hold_time() -> None:
    course = Course()
    for _ in range(20):
        course.look(judgement(RuleName.QUEUE_AGE, "email", hold_s=30))
    assert course.told == [("open", "queue_age", 35.0)]


def test_a_crossing_that_passes_before_is_never_told() -> None:
    course = Course()
    for _ in range(4):
        course.look(judgement(RuleName.QUEUE_AGE, "email", hold_s=30))
    for _ in range(20):
        course.look(judgement(RuleName.QUEUE_AGE, "email", level=Level.CLEAR))
    assert (course.told, course.standing) == ([], {})


def test_b138_a_provider_that_fails_and_recovers_for_ten_minutes_is_one_episode() -> None:
    course = Course()
    for tick in range(120):
        level = Level.ABOVE if tick // 4 % 2 == 0 else Level.CLEAR
        course.look(judgement(RuleName.CHANNEL_FAILURES, "postmark", level=level, hold_s=15))
    for _ in range(80):
        course.look(judgement(RuleName.CHANNEL_FAILURES, "postmark", level=Level.CLEAR))
    assert [(move, rule) for move, rule, _ in course.told] == [
        ("open", "channel_failures"), ("resolve", "channel_failures"),
    ]  # fmt: skip
    assert course.told[1][2] > 600


def test_a_value_just_below_its_limit_ends_nothing() -> None:
    course = Course()
    course.look(judgement(RuleName.UNMAPPED, "twilio"))
    for _ in range(200):
        course.look(judgement(RuleName.UNMAPPED, "twilio", level=Level.BETWEEN))
    assert [move for move, _, _ in course.told] == ["open"]


def test_what_is_not_measured_is_neither_worse_nor_over() -> None:
    course = Course()
    course.look(judgement(RuleName.EXPIRED, "IT"))
    for _ in range(200):
        course.look(unmeasured=[RuleName.EXPIRED])
    assert [move for move, _, _ in course.told] == ["open"]


def test_a_key_that_is_named_no_more_is_over() -> None:
    course = Course()
    course.look(judgement(RuleName.QUEUE_AGE, "sms"))
    for _ in range(62):
        course.look()
    assert [move for move, _, _ in course.told] == ["open", "resolve"]


def test_what_another_alert_explains_is_not_told_beside_it() -> None:
    course = Course()
    refused = judgement(RuleName.CALLBACKS_REFUSED, "postmark")
    silent = judgement(RuleName.PROVIDER_SILENT, "postmark")
    elsewhere = judgement(RuleName.PROVIDER_SILENT, "twilio")
    for _ in range(10):
        course.look(silent, refused, elsewhere)
    assert {rule for _, rule, _ in course.told} == {"callbacks_refused", "provider_silent"}
    assert ("provider_silent", "postmark") not in course.standing
    assert ("provider_silent", "twilio") in course.standing


def test_what_outlives_its_explanation_is_told_then() -> None:
    course = Course()
    paused = judgement(RuleName.PROVIDER_PAUSED, "postmark")
    old = judgement(RuleName.QUEUE_AGE, "email")
    course.look(paused, old)
    for _ in range(70):
        course.look(old)
    assert [(move, rule) for move, rule, _ in course.told] == [
        ("open", "provider_paused"), ("resolve", "provider_paused"), ("open", "queue_age"),
    ]  # fmt: skip


def test_one_silent_sweep_does_not_explain_an_old_queue() -> None:
    course = Course()
    course.look(judgement(RuleName.SWEEP_STALLED, "poll"), judgement(RuleName.QUEUE_AGE, "email"))
    assert len(course.told) == 2


def test_a_sweep_that_stalls_alone_explains_what_it_leaves_undone_and_no_more() -> None:
    course = Course()
    stalled, old = judgement(RuleName.SWEEP_STALLED, "checkpoint"), RuleName.QUEUE_AGE
    course.look(stalled, judgement(RuleName.CHECKPOINT_MISSING), judgement(old, "email"))
    assert {rule for _, rule, _ in course.told} == {"sweep_stalled", "queue_age"}


def test_no_alert_explains_itself_in_the_end() -> None:
    """Else each would wait for the other, and nobody would be told of either."""
    assert set(TopologicalSorter(EXPLAINS).static_order()) <= set(RuleName)


def test_what_a_sweep_leaves_undone_is_said_of_sweeps_that_there_are() -> None:
    assert set(OF_ONE_SWEEP) <= set(TICKS)


def test_a_hold_that_nobody_watched_begins_anew() -> None:
    course = Course()
    course.look(judgement(RuleName.QUEUE_AGE, "email", hold_s=20))
    course.look(judgement(RuleName.QUEUE_AGE, "email", hold_s=20), after_s=120)
    assert course.told == []


def standing(rule: RuleName, key: str = "", *, state: str = "open") -> Standing:
    """One that opened for tokens of `LIFE_S`."""
    opened_at = BEGIN if state == "open" else None
    return Standing(
        uuid.uuid4(), rule, key, state, BEGIN, opened_at, BEGIN, None, 2.0, 2.0, 1.0, "count", 1,
        LIFE_S,
    )  # fmt: skip


def kept(now: Judged, then: Judged, *stands: Standing, life_s: float = 3_600.0) -> dict[str, Level]:
    """How each rule is judged where the limits by now say one thing, and the old ones another."""
    by_life = {LIFE_S: then}
    found = as_opened(now, stands, life_s, lambda life: by_life[life])
    return {str(each.rule): each.level for each in found.judgements}


def judged(*judgements: Judgement) -> Judged:
    return Judged(judgements, frozenset())


def test_a_limit_that_rose_since_an_episode_opened_does_not_end_it() -> None:
    rule = RuleName.QUEUE_AGE
    then, now = judgement(rule), judgement(rule, level=Level.CLEAR)
    assert kept(judged(now), judged(then), standing(rule)) == {rule: Level.ABOVE}
    assert kept(judged(), judged(then), standing(rule)) == {rule: Level.ABOVE}


def test_an_episode_is_over_by_its_own_limit_unless_the_one_by_now_is_crossed() -> None:
    rule = RuleName.QUEUE_AGE
    then = judgement(rule, level=Level.CLEAR)
    near, over = judgement(rule, level=Level.BETWEEN), judgement(rule)
    assert kept(judged(near), judged(then), standing(rule)) == {rule: Level.CLEAR}
    assert kept(judged(over), judged(then), standing(rule)) == {rule: Level.BETWEEN}
    assert kept(judged(near), judged(), standing(rule)) == {}
    assert kept(judged(over), judged(), standing(rule)) == {rule: Level.ABOVE}


def test_what_is_not_open_is_judged_by_the_limit_by_now() -> None:
    rule, other = RuleName.QUEUE_AGE, RuleName.UNMAPPED
    then = judged(judgement(rule), judgement(other))
    now = judged(judgement(rule, level=Level.CLEAR), judgement(other, level=Level.CLEAR))
    clear = {rule: Level.CLEAR, other: Level.CLEAR}
    assert kept(now, then) == clear
    assert kept(now, then, standing(rule, state="held")) == clear
    assert kept(now, then, standing(rule), life_s=LIFE_S) == clear
    assert kept(now, then, standing(rule)) == {rule: Level.ABOVE, other: Level.CLEAR}


def test_an_episode_is_clear_for_as_long_as_its_own_limit_asks() -> None:
    quick, slow = standing(RuleName.QUEUE_AGE, "email"), standing(RuleName.QUEUE_AGE, "sms")
    quick = replace(quick, life_s=60.0, clear_since=BEGIN)
    slow = replace(slow, clear_since=BEGIN)
    changes = decide(
        [quick, slow], judged(), BEGIN + timedelta(seconds=40),
        lambda each: timedelta(seconds=each.life_s / 2),
    )  # fmt: skip
    assert {each.key: each.move for each in changes} == {"email": Move.RESOLVE, "sms": Move.KEEP}
