"""What a peer saw, in order, and the calls it is holding.

Both are read and steered from outside over HTTP, so that a test can wait for a step instead
of sleeping and can keep a caller frozen at an exact point.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime

Entry = dict[str, object]


class Journal:
    """An append-only list of entries, each with a rising `seq` (from 1) and the time `at`."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._grown = threading.Condition()

    def add(self, phase: str, facts: Mapping[str, object]) -> None:
        """Append one entry and wake everybody who waits for news."""
        entry: Entry = {"seq": 0, "at": datetime.now(UTC).isoformat(), "phase": phase, **facts}
        with self._grown:
            entry["seq"] = len(self._entries) + 1
            self._entries.append(entry)
            self._grown.notify_all()

    def since(self, seq: int, wait_s: float = 0.0) -> list[Entry]:
        """Entries after `seq`; with none yet, waits up to `wait_s` seconds for the first."""
        with self._grown:
            self._grown.wait_for(lambda: len(self._entries) > seq, timeout=wait_s)
            return self._entries[max(seq, 0) :]


class Holds:
    """Calls that stand still until somebody releases them, or until the peer closes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, tuple[Entry, threading.Event]] = {}
        self._drop: set[int] = set()
        self._last = 0
        self._closed = False

    def begin(self, facts: Mapping[str, object]) -> int:
        """Register a call about to stand still; the number names it in `release`."""
        with self._lock:
            self._last += 1
            event = threading.Event()
            self._held[self._last] = ({"id": self._last, **facts}, event)
            if self._closed:
                event.set()
            return self._last

    def wait(self, number: int) -> bool:
        """Stand still. True: go on as if nothing had happened; False: drop the connection."""
        with self._lock:
            event = self._held[number][1]
        event.wait()
        with self._lock:
            del self._held[number]
            return not self._closed and number not in self._drop

    def listing(self) -> list[Entry]:
        """The calls standing still now, oldest first."""
        with self._lock:
            return [facts for facts, event in self._held.values() if not event.is_set()]

    def release(self, number: int | None = None, *, drop: bool = False) -> int:
        """Let one call (None: all) go on, or drop its connection; gives how many that were."""
        with self._lock:
            chosen = [n for n, (_, event) in self._held.items() if not event.is_set()]
            if number is not None:
                chosen = [n for n in chosen if n == number]
            if drop:
                self._drop.update(chosen)
            for n in chosen:
                self._held[n][1].set()
            return len(chosen)

    def close(self) -> None:
        """Drop everything that stands still, now and later."""
        with self._lock:
            self._closed = True
            for _, event in self._held.values():
                event.set()
