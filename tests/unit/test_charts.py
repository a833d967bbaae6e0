"""Charts as numbers: what is not known is never drawn as nought."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from notifier.signals import thresholds
from notifier.signals.limits import limits_of
from notifier.store.reads.rollups import MINUTE, Minute, Waits
from notifier.web.people import charts, panels
from notifier.web.people.charts import Frame

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def frame(buckets: int, minutes: int = 60) -> Frame:
    return Frame(
        NOON, NOON + timedelta(minutes=minutes), buckets, 100, 60, left=0, right=0, top=10, bottom=0
    )


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (1, 1), (1.2, 2), (3, 5), (7, 10), (10, 10), (11, 20), (4300, 5000)]
)
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert charts.nice_top(value) == top


def test_a_bar_stands_for_each_value_and_none_for_nought_or_a_gap() -> None:
    assert charts.bars(frame(4), [5, 0, None, 10], 10) == "M0 35h23v25h-23M75 10h23v50h-23"


def test_stacked_bars_stand_on_each_other() -> None:
    lower, upper = charts.stacked(frame(1), [[2], [3]], 10)
    assert (lower, upper) == ("M0 50h98v10h-98", "M0 35h98v15h-98")


def test_a_line_keeps_its_height_and_breaks_where_nothing_is_known() -> None:
    assert charts.steps(frame(5), [1, 1, None, 10, 5], 10) == "M0 55H40M60 10H80V35H100"


def test_neighbouring_gaps_are_one_hatched_field() -> None:
    known = [True, False, False, True, False]
    assert charts.gaps(frame(5), known) == "M20 10h40v50h-40M80 10h20v50h-20"


@pytest.mark.parametrize(
    ("minutes", "labels"),
    [
        (60, ["12:00", "12:10", "12:20", "12:30", "12:40", "12:50", "13:00"]),
        (1440, ["12:00", "16:00", "20:00", "01 Feb", "04:00", "08:00", "12:00"]),
    ],
)
def test_times_are_round_and_midnight_is_a_day(minutes: int, labels: list[str]) -> None:
    ticks = charts.x_ticks(frame(60, minutes))
    assert [each.label for each in ticks] == labels
    assert ticks[0].at == 0
    assert ticks[-1].at == 100


def test_a_spark_shows_its_limit_and_says_when_it_was_reached() -> None:
    calm, over = charts.spark([1, 4, None], 10), charts.spark([1, 12], 10)
    assert (calm.limit, calm.over) == (2, False)
    assert (over.limit, over.over) == (10, True)
    assert calm.gaps
    assert not over.gaps
    assert charts.spark([1]).limit is None
    assert charts.spark([1, 2], 10).limit is None


def test_minutes_fold_into_wider_buckets_and_a_gap_stays_one() -> None:
    created = [1, 2, None, 3, None, None, *[4] * 64]
    minutes = [
        Minute(NOON + place * MINUTE, {"created": n}, Waits(n, 1, n))
        if n
        else Minute(NOON + place * MINUTE)
        for place, n in enumerate(created)
    ]
    until = NOON + len(created) * MINUTE
    creation, queue, _ = panels.build(
        minutes, NOON, until, thresholds.rules(limits_of({}, 600.0)), (), ()
    )
    assert [row.cells for row in creation.rows[:4]] == [(3,), (3,), (None,), (8,)]
    assert [row.is_whole for row in creation.rows[:4]] == [True, False, False, True]
    assert [row.cells[1] for row in queue.rows[:4]] == [2, 3, None, 4]


@given(some.lists(some.none() | some.integers(0, 10_000), min_size=1, max_size=80))
def test_nothing_is_ever_drawn_outside_of_the_frame(values: list[int | None]) -> None:
    held = frame(len(values))
    most = charts.top_of(values)
    known = [each is not None for each in values]
    drawn = charts.steps(held, values, most)
    points = [
        float(each) for each in drawn.replace("V", " ").replace("H", " ").replace("M", " ").split()
    ]
    assert all(0 <= each <= 100 for each in points)
    assert (charts.gaps(held, known) == "") is all(known)
    assert charts.bars(held, values, most).count("M") == sum(bool(each) for each in values)
