"""Where the lines and bars of a chart stand: numbers to SVG paths, nothing else.

A chart's time axis is cut into buckets of one width. A value that is None was not counted: its
bucket is hatched, a line breaks at it, and no bar says nought. Coordinates are in the units of
the chart's own `viewBox`, two to a pixel, in whole numbers: a page draws thousands of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

Value = float | int | None
Values = Sequence[Value]

SPARK_WIDTH: Final = 240
SPARK_HEIGHT: Final = 48

FAR: Final = 4
"""A limit so many times above all values is out of sight: drawn, it would flatten them."""

_STEPS: Final = (1, 2, 5, 10)
_TIME_STEPS_MIN: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720)
_MOST_LABELS: Final = 6


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot's room in a drawing of `width` by `height`, and the time along it."""

    since: datetime
    until: datetime
    buckets: int
    width: int = 760
    height: int = 300
    left: int = 68
    right: int = 8
    top: int = 32
    bottom: int = 36

    @property
    def view_box(self) -> str:
        """For the attribute of that name."""
        return f"0 0 {self.width} {self.height}"

    @property
    def floor(self) -> int:
        """Where nought stands."""
        return self.height - self.bottom

    @property
    def step(self) -> float:
        """The width of one bucket."""
        return (self.width - self.left - self.right) / max(1, self.buckets)

    def x(self, place: float) -> float:
        """The left edge of a bucket; between two for a broken number."""
        return self.left + place * self.step

    def x_at(self, at: datetime) -> float:
        """Where an instant stands."""
        return self.x(self.buckets * ((at - self.since) / (self.until - self.since)))

    def y(self, value: float, most: float) -> float:
        """Where a value stands when `most` is at the top."""
        return self.floor - min(1.0, value / most) * (self.floor - self.top)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: int
    label: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """One series: `kind` names its look, `path` is where it runs, `last` its newest value."""

    kind: str
    name: str
    path: str
    last: str


@dataclass(frozen=True, slots=True)
class Spark:
    """A row of small bars with its threshold; `limit` is None where there is none.

    `gaps`: where nothing was counted, from where on and how wide, in parts of the whole.
    """

    bars: str
    gaps: tuple[tuple[float, float], ...]
    limit: int | None
    over: bool
    view_box: str = f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}"
    width: int = SPARK_WIDTH


def nice_top(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... from `value` up; at least 1."""
    if value <= 1:
        return 1
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in _STEPS if step * scale >= value)


def top_of(*series: Values, limit: float | None = None) -> float:
    """The top of an axis that these values fit under, and the limit too where it is near."""
    most = max((each for values in series for each in values if each is not None), default=0)
    if limit is not None and limit <= FAR * max(most, 1):
        most = max(most, limit)
    return nice_top(most)


def y_ticks(frame: Frame, most: float, unit: str = "") -> tuple[Tick, ...]:
    """Nought, the middle and the top."""
    marks = (0, most / 2, most) if most >= 2 else (0, most)
    return tuple(Tick(round(frame.y(each, most)), f"{each:g}{unit}") for each in marks)


def x_ticks(frame: Frame) -> tuple[Tick, ...]:
    """Round times of the day, UTC, at most six; midnight is written as its day."""
    minutes = (frame.until - frame.since) / timedelta(minutes=1)
    step = next((each for each in _TIME_STEPS_MIN if minutes / each <= _MOST_LABELS), 1440)
    width = timedelta(minutes=step)
    midnight = frame.since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight + math.ceil((frame.since - midnight) / width) * width
    times = (first + number * width for number in range(_MOST_LABELS + 1))
    return tuple(
        Tick(round(frame.x_at(at)), f"{at:%H:%M}" if at.hour or at.minute else f"{at:%d %b}")
        for at in times
        if at <= frame.until
    )


def bars(frame: Frame, values: Values, most: float) -> str:
    """A bar for each value that is known and not nought."""
    return stacked(frame, [values], most)[0]


def stacked(frame: Frame, series: Sequence[Values], most: float) -> list[str]:
    """Each series' bars on top of those before it."""
    below = [0.0] * frame.buckets
    paths = []
    room = min(2.0, frame.step / 4)
    for values in series:
        parts = []
        for place, value in enumerate(values):
            if value:
                low, high = frame.y(below[place], most), frame.y(below[place] + value, most)
                parts.append(_box(frame.x(place), high, frame.x(place + 1) - room, low))
                below[place] += value
        paths.append("".join(parts))
    return paths


def steps(frame: Frame, values: Values, most: float) -> str:
    """A line that keeps its height through each bucket and breaks where nothing is known."""
    parts, level = [], None
    for place, value in enumerate(values):
        if value is None:
            level = None
            continue
        y = round(frame.y(value, most))
        if level is None:
            parts.append(f"M{round(frame.x(place))} {y}")
        elif y != level:
            parts.append(f"V{y}")
        parts.append(f"H{round(frame.x(place + 1))}")
        level = y
    return _joined("".join(parts))


def gaps(frame: Frame, known: Sequence[bool]) -> str:
    """The room over all that is not known, neighbours as one."""
    return "".join(
        _box(frame.x(begin), frame.top, frame.x(end), frame.floor) for begin, end in _unknown(known)
    )


def _unknown(known: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """From which place up to which nothing is known, neighbours as one."""
    for is_known, run in groupby(range(len(known)), key=lambda place: known[place]):
        if not is_known:
            places = list(run)
            yield places[0], places[-1] + 1


def spark(values: Values, limit: float | None = None) -> Spark:
    """Small bars of all values, and the limit where it is near enough not to flatten them."""
    moment = datetime(2000, 1, 1, tzinfo=UTC)
    frame = Frame(
        moment, moment + timedelta(minutes=1), len(values), SPARK_WIDTH, SPARK_HEIGHT,
        left=0, right=0, top=2, bottom=0,
    )  # fmt: skip
    most = max([each for each in values if each is not None] + [1])
    near = limit is not None and 0 < limit <= FAR * most
    most = max(most, limit) if limit is not None and near else most
    height = round(frame.y(limit, most)) if limit is not None and near else None
    over = limit is not None and any(each is not None and each >= limit > 0 for each in values)
    holes = _unknown([each is not None for each in values])
    parts = tuple((begin / len(values), (end - begin) / len(values)) for begin, end in holes)
    return Spark(bars(frame, values, most), parts, height, over)


def _box(left: float, high: float, right: float, low: float) -> str:
    """Its fourth side is left to the fill, which closes what is open."""
    width, height = round(right) - round(left), round(low) - round(high)
    return f"M{round(left)} {round(high)}h{width}v{height}h{-width}"


def _joined(path: str) -> str:
    """Runs of one height are one stroke: only the last of several ends counts."""
    parts = path.replace("M", " M").replace("V", " V").replace("H", " H").split(" ")
    kept: list[str] = []
    for part in filter(None, parts):
        if part.startswith("H") and kept and kept[-1].startswith("H"):
            kept[-1] = part
        elif kept and not part[0].isalpha():
            kept[-1] += f" {part}"
        else:
            kept.append(part)
    return "".join(kept)
