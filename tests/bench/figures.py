"""What a benchmark found, beside what it should be."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `at_least` or `at_most` is what it should be, None where it is told."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def goal(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "" if self.at_most is None else f"<= {self.at_most:g}"


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all lie at or below (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def table(figures: Sequence[Figure]) -> str:
    """One line a figure; a missed goal is marked."""
    width = max(len(each.name) for each in figures)
    return "\n".join(
        f"{each.name:<{width}}  {each.value:>10.3f} {each.unit:<6} {each.goal:<8} "
        f"{'' if each.holds else 'MISSED'}".rstrip()
        for each in figures
    )


def keep(figures: Sequence[Figure], folder: Path) -> Path:
    """Write them as JSON, with what one needs to judge them."""
    now = datetime.now(UTC)
    document = {
        "at": now.isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "load_average": os.getloadavg(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "figures": [asdict(each) | {"holds": each.holds} for each in figures],
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"bench-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path
