"""What a run found: one line a figure, the product's beside the plain worker's."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

Value = float | int | None


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure; `at_least` and `at_most` bind the product alone. None: not told."""

    name: str
    ours: Value
    plain: Value = None
    at_least: Value = None
    at_most: Value = None

    @property
    def holds(self) -> bool:
        """Whether the product kept what is wanted of it."""
        if self.at_least is None and self.at_most is None:
            return True
        if self.ours is None:
            return False
        return (self.at_least is None or self.ours >= self.at_least) and (
            self.at_most is None or self.ours <= self.at_most
        )

    @property
    def wanted(self) -> str:
        """The bound in words."""
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "" if self.at_most is None else f"<= {self.at_most:g}"


@dataclass(slots=True)
class Report:
    """Everything that a run found."""

    arguments: Mapping[str, object]
    figures: list[Figure] = field(default_factory=list)
    told: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """Tables of counts by name, such as why unknown outcomes are unknown."""
    broken: dict[str, Sequence[str]] = field(default_factory=dict)
    """Examples of what should not be, by the figure's name."""

    @property
    def holds(self) -> bool:
        """Whether every promise was kept."""
        return all(each.holds for each in self.figures)

    def text(self) -> str:
        """The tables for people."""
        parts = [_table(self.figures)]
        for name, counts in self.told.items():
            if not counts:
                continue
            lines = [f"  {n:>7}  {what}" for what, n in sorted(counts.items(), key=_by_count)]
            parts.append("\n".join([f"{name}:", *lines]))
        for name, examples in self.broken.items():
            parts.append("\n".join([f"BROKEN {name}:", *(f"  {each}" for each in examples)]))
        return "\n\n".join(parts)

    def keep(self, path: Path) -> None:
        """Write it as JSON, with what one needs to judge it."""
        document = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "processors": os.cpu_count(),
            "load_average": os.getloadavg(),
            "python": platform.python_version(),
            "arguments": dict(self.arguments),
            "holds": self.holds,
            "figures": [asdict(each) | {"holds": each.holds} for each in self.figures],
            "told": {name: dict(counts) for name, counts in self.told.items()},
            "broken": {name: list(examples) for name, examples in self.broken.items()},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=2) + "\n")


def _by_count(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _table(figures: Sequence[Figure]) -> str:
    width = max(len(each.name) for each in figures)
    head = f"{'':<{width}}  {'product':>9}  {'plain':>9}  wanted"
    lines = [
        f"{each.name:<{width}}  {_shown(each.ours):>9}  {_shown(each.plain):>9}  {each.wanted:<8}"
        f"{'' if each.holds else 'BROKEN'}".rstrip()
        for each in figures
    ]
    return "\n".join([head, *lines])


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
