"""What the product's processes hold in memory, as the kernel counts it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.bench.figures import Figure
from tests.bench.ground import App

LIMIT_MIB = 180
LINE = re.compile(r"^(Rss|Pss): +(\d+) kB$", re.MULTILINE)


def measured(app: App) -> list[Figure]:
    """Of the serving process, and of the small one above it."""
    found = []
    for name, pid in (("serving process", serving(app.pid)), ("its parent", app.pid)):
        held = held_mib(pid)
        found += [
            Figure(f"{name}: RSS", held["Rss"], "MiB", at_most=LIMIT_MIB),
            Figure(f"{name}: PSS", held["Pss"], "MiB"),
        ]
    return found


def serving(parent: int) -> int:
    """The one child that answers requests: the largest."""
    threads = Path(f"/proc/{parent}/task").iterdir()
    children = [int(pid) for each in threads for pid in (each / "children").read_text().split()]
    return max(children, key=lambda pid: held_mib(pid)["Rss"])


def held_mib(pid: int) -> dict[str, float]:
    """Resident and proportional set size."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {name: int(kib) / 1024 for name, kib in LINE.findall(text)}
