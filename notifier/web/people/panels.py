"""The three panels of an incident: which series each has, what its table says, what marks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from notifier.signals import rule_words
from notifier.signals.thresholds import Crossing, Rule, Signal, Unit
from notifier.store.reads.incident import Marker, MarkerKind
from notifier.store.reads.rollups import MINUTE, Minute, Trend, Waits
from notifier.web.people import charts, times
from notifier.web.people.charts import Drawn, Frame, Tick, Value, Values

MOST_BUCKETS: Final = 64
"""An hour by minutes, with a little of the one before."""
LETTER: Final = 16
"""Units of the drawing that a character of a mark's sign needs, with a wide face too."""
ROOM: Final = 10
"""Units between two signs."""

_WIDTHS_MIN: Final = (1, 2, 3, 5, 10, 15, 20, 30)
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)

SIGNALS: Final = {
    Signal.COLLECTOR_GAP: "nobody counted for two minutes",
    Signal.RESCUES: "a worker was lost or fell silent",
    Signal.CALLBACKS_REFUSED: "callbacks were refused",
    Signal.UNMAPPED: "a provider used a word that we do not know",
    Signal.FAILURE_SHARE: "too many calls failed or were not taken",
    Signal.UNKNOWN_SHARE: "too many outcomes were unknown",
    Signal.QUEUE_AGE: "deliveries waited too long in the queue",
    Signal.AVOIDABLE_SHARE: "too many text messages need not have been sent",
    Signal.EXPIRED: "notices expired",
}

MARKERS: Final = {
    MarkerKind.HALT_ENGAGED: "halt engaged",
    MarkerKind.HALT_RELEASED: "halt released",
    MarkerKind.TEMPLATE: "template first seen",
    MarkerKind.POLICY: "policy revision",
    MarkerKind.VERSION: "version first seen",
    MarkerKind.ALERT: "alert",
}

STACK: Final = {
    "accepted": ("accepted", ("accepted",)),
    "not-accepted": ("not taken", ("not_accepted",)),
    "failed": ("failed", ("refused", "failed")),
    "unknown": ("unknown", ("unknown",)),
    "expired": ("expired", ("expired",)),
}
"""Kind of drawing to its name and the signals that it adds up, from the floor upwards."""


CAUSES: Final = {
    "queue": ("waited too long", "queue_delay"),
    "no-link": ("no link", "no_link"),
    "unknown": ("outcome unknown", "unknown"),
    "unconfirmed": ("handed over, no news", "unconfirmed"),
    "failed": ("hard failure", "hard_failure"),
    "halt": ("halted", "halt"),
    "other": ("other", "other"),
}
"""Kind of drawing to the words for a cause of expiry and its name in the counts."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line with its sign; `kind` is `crossing` or `change`."""

    at: int
    sign: str
    kind: str


@dataclass(frozen=True, slots=True)
class Row:
    """One bucket of the table; a cell is None where nothing is known."""

    label: str
    cells: tuple[Value, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart with everything that stands around it."""

    name: str
    title: str
    told: str
    frame: Frame
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    gaps: str
    bars: tuple[Drawn, ...]
    lines: tuple[Drawn, ...]
    limit: int | None
    limit_word: str
    marks: tuple[Mark, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def width_of(since: datetime, until: datetime) -> int:
    """Minutes in a bucket, so that there are at most `MOST_BUCKETS`."""
    minutes = (until - since) / MINUTE
    fitting = (each for each in _WIDTHS_MIN if minutes / each <= MOST_BUCKETS)
    return next(fitting, _WIDTHS_MIN[-1])


def widened(since: datetime, until: datetime) -> tuple[datetime, datetime]:
    """The range in whole buckets, which begin at round times so that they stay as time goes on."""
    width = width_of(since, until) * MINUTE
    begin = since - (since - _EPOCH) % width
    rest = (until - _EPOCH) % width
    return begin, until + width - rest if rest else until


def build(
    minutes: Sequence[Minute],
    since: datetime,
    until: datetime,
    rules: Sequence[Rule],
    crossings: Sequence[Crossing],
    markers: Sequence[Marker],
) -> tuple[Panel, ...]:
    """Creation, queue age and outcomes, all with the same axis and the same marks."""
    width = width_of(since, until)
    axis = _Axis.of(minutes, since, width)
    marks = _marks(axis.frame, crossings, markers)
    queue = next(each for each in rules if each.signal is Signal.QUEUE_AGE)
    return (
        _creation(axis, marks),
        _ages(axis, marks, queue),
        _outcomes(axis, marks),
    )


def causes(trend: Trend) -> Panel:
    """Why notices expired, an interval a bar."""
    length = len(trend.known)
    frame = Frame(trend.since, trend.since + length * trend.width, length, height=220)
    stack = {kind: trend.values(reason) for kind, (_, reason) in CAUSES.items()}
    sums = [sum(each or 0 for each in bucket) for bucket in zip(*stack.values(), strict=True)]
    most = charts.top_of(sums)
    paths = charts.stacked(frame, list(stack.values()), most)
    drawn = tuple(
        Drawn(kind, CAUSES[kind][0], path, _total(values))
        for (kind, values), path in zip(stack.items(), paths, strict=True)
        if any(values)
    )
    rows = tuple(
        Row(f"{trend.since + place * trend.width:%d %b %H:%M}", cells, trend.known[place])
        for place, cells in enumerate(zip(*stack.values(), strict=True))
    )
    columns = {CAUSES[kind][0]: values for kind, values in stack.items()}
    return Panel(
        "causes", "Why they expired, by the hour in UTC", _told(columns, trend.known), frame,
        charts.y_ticks(frame, most), charts.x_ticks(frame), charts.gaps(frame, trend.known),
        drawn, (), None, "", (), tuple(columns), rows,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Axis:
    """The frame and what each of its buckets holds, added up once for all panels."""

    frame: Frame
    width: int
    buckets: Sequence[Minute]
    counted: Sequence[bool]
    sampled: Sequence[bool]

    @classmethod
    def of(cls, minutes: Sequence[Minute], since: datetime, width: int) -> _Axis:
        parts = [minutes[at : at + width] for at in range(0, len(minutes), width)]
        count = max(1, len(parts))
        frame = Frame(since, since + count * width * MINUTE, count, height=324, top=56)
        return cls(
            frame, width, [_folded(part) for part in parts],
            [all(each.counts is not None for each in part) for part in parts],
            [all(each.queue is not None for each in part) for part in parts],
        )  # fmt: skip

    def counts(self, *signals: str) -> list[Value]:
        return [each.count(*signals) for each in self.buckets]

    def ages(self, name: str) -> list[Value]:
        return [getattr(each.queue, name) if each.queue else None for each in self.buckets]

    def rows(self, whole: Sequence[bool], *columns: Values) -> tuple[Row, ...]:
        width = timedelta(minutes=self.width)
        return tuple(
            Row(f"{self.frame.since + place * width:%H:%M}", cells, whole[place])
            for place, cells in enumerate(zip(*columns, strict=True))
        )


def _folded(minutes: Sequence[Minute]) -> Minute:
    """Neighbours as one: the sums of what was counted, the worst of what was sampled."""
    if len(minutes) == 1:
        return minutes[0]
    counted = [each.counts for each in minutes if each.counts is not None]
    sampled = [each.queue for each in minutes if each.queue]
    sums: Counter[str] = Counter()
    for each in counted:
        sums.update(each)
    return Minute(
        minutes[0].at, sums if counted else None, _worst(sampled) if sampled else None
    )  # fmt: skip


def _worst(samples: Sequence[Waits]) -> Waits:
    return Waits(
        max(each.waiting for each in samples), max(each.p50_s for each in samples),
        max(each.p95_s for each in samples), max(each.max_s for each in samples),
    )  # fmt: skip


def _creation(axis: _Axis, marks: tuple[Mark, ...]) -> Panel:
    values = axis.counts("created")
    most = charts.top_of(values)
    drawn = Drawn("created", "events", charts.bars(axis.frame, values, most), _total(values))
    return _panel(
        axis, "creation", "Events created", most, axis.counted, marks, bars=(drawn,),
        columns={"events": values},
    )  # fmt: skip


def _ages(axis: _Axis, marks: tuple[Mark, ...], rule: Rule) -> Panel:
    series = {name: axis.ages(f"{name}_s") for name in ("p50", "p95", "max")}
    most = charts.top_of(*series.values(), limit=rule.limit)
    lines = tuple(
        Drawn(name, name, charts.steps(axis.frame, values, most), _latest(values))
        for name, values in series.items()
    )
    in_sight = rule.limit if 0 < rule.limit <= most else None
    return _panel(
        axis, "queue", "Queue age", most, axis.sampled, marks, lines=lines, unit=" s",
        limit=in_sight, columns=series,
    )  # fmt: skip


def _outcomes(axis: _Axis, marks: tuple[Mark, ...]) -> Panel:
    stack = {kind: axis.counts(*signals) for kind, (_, signals) in STACK.items()}
    delivered = axis.counts("delivered")
    sums = [sum(each or 0 for each in bucket) for bucket in zip(*stack.values(), strict=True)]
    most = charts.top_of(sums, delivered)
    paths = charts.stacked(axis.frame, list(stack.values()), most)
    bars = tuple(
        Drawn(kind, STACK[kind][0], path, _total(values))
        for (kind, values), path in zip(stack.items(), paths, strict=True)
    )
    path = charts.steps(axis.frame, delivered, most)
    line = Drawn("delivered", "delivered", path, _total(delivered))
    columns = {STACK[kind][0]: values for kind, values in stack.items()}
    return _panel(
        axis, "outcomes", "Channel outcomes", most, axis.counted, marks, bars=bars, lines=(line,),
        columns={**columns, "delivered": delivered},
    )  # fmt: skip


def _panel(  # noqa: PLR0913 - a panel has as many parts
    axis: _Axis,
    name: str,
    title: str,
    most: float,
    whole: Sequence[bool],
    marks: tuple[Mark, ...],
    *,
    columns: dict[str, list[Value]],
    bars: tuple[Drawn, ...] = (),
    lines: tuple[Drawn, ...] = (),
    unit: str = "",
    limit: float | None = None,
) -> Panel:
    frame = axis.frame
    return Panel(
        name, title, _told(columns, whole), frame, charts.y_ticks(frame, most, unit),
        charts.x_ticks(frame), charts.gaps(frame, whole), bars, lines,
        round(frame.y(limit, most)) if limit else None,
        f"limit {in_words(limit, Unit.SECONDS)}" if limit else "", marks, tuple(columns),
        axis.rows(whole, *columns.values()),
    )  # fmt: skip


def _told(columns: Mapping[str, Values], whole: Sequence[bool]) -> str:
    """The chart in words, for whoever does not see it."""
    parts = []
    for name, values in columns.items():
        known = [each for each in values if each is not None]
        parts.append(f"{name}: at most {round(max(known))}" if known else f"{name}: not known")
    missing = sum(not each for each in whole)
    gap = f" {missing} of {len(whole)} intervals are not wholly known." if missing else ""
    return f"{', '.join(parts)} in an interval.{gap}"


def _marks(
    frame: Frame, crossings: Sequence[Crossing], markers: Sequence[Marker]
) -> tuple[Mark, ...]:
    """Crossings have letters, changes numbers, in the order of their lists."""
    letters = [(frame.x_at(each.at), sign_of(place)) for place, each in enumerate(crossings)]
    numbers = [(frame.x_at(each.at), str(place)) for place, each in enumerate(markers, 1)]
    return (*_apart(letters, "crossing"), *_apart(numbers, "change"))


def _apart(signs: Sequence[tuple[float, str]], kind: str) -> list[Mark]:
    """One mark for those that would be written over each other: the first and the last sign.

    A shared sign is wider, so it may touch the one before, and then stands for that one too.
    """
    marks: list[Mark] = []
    for at, sign in signs:
        mark = Mark(round(at), sign, kind)
        while marks and _touch(marks[-1], mark):
            first = marks.pop()
            ends = first.sign.partition("-")[0], mark.sign.rpartition("-")[2]
            mark = Mark(first.at, "-".join(ends), kind)
        marks.append(mark)
    return marks


def _touch(left: Mark, right: Mark) -> bool:
    """Whether their signs, each written about its place, would have too little room between."""
    half = LETTER * (len(left.sign) + len(right.sign)) / 2
    return right.at - left.at < half + ROOM


def sign_of(place: int) -> str:
    """A, B, C, ... for the first crossings in their order."""
    return chr(ord("A") + place)


def in_words(value: float, unit: Unit) -> str:
    """A value or a limit, as the alert of it is told."""
    return rule_words.amount(value, unit)


def _total(values: Values) -> str:
    known = [each for each in values if each is not None]
    return f"{sum(known):,}" if known else "not known"


def _latest(values: Values) -> str:
    latest = next((each for each in reversed(values) if each is not None), None)
    return "not known" if latest is None else times.span(timedelta(seconds=latest))
