"""What the stand-ins do later, and the callbacks that they post.

One thread keeps the time and does what is quick; callbacks are posted from a few others, so
that an app that does not answer holds up neither the time nor the rest of the callbacks.
"""

from __future__ import annotations

import heapq
import http.client
import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from peers.journal import Journal

CALLBACK_LIMIT_S = 15.0
POSTING_THREADS = 8


class Agenda:
    """Runs quick things at their time, in order of time."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="agenda")

    def start(self) -> None:
        """Begin to keep the time."""
        self._thread.start()

    def close(self) -> None:
        """Forget what is still to come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def at(self, after_s: float, do: Callable[[], None]) -> None:
        """Do it `after_s` seconds from now."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + after_s, next(self._numbers), do))
            self._changed.notify_all()

    def _run(self) -> None:
        while (do := self._next()) is not None:
            do()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._closed:
                wait = self._due[0][0] - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(wait)
            return None


@dataclass(frozen=True, slots=True)
class Callback:
    """One POST to the app; `facts` go into the journal beside the answer."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    facts: Mapping[str, object] = field(default_factory=dict)
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Patience:
    """When a callback is posted again: after so many seconds each time, unless it is taken.

    `after_answers`: also when the app answered, but not with 2xx; 403 always ends it.
    """

    waits_s: tuple[float, ...]
    after_answers: bool

    def next_wait(self, attempt: int, status: int | None) -> float | None:
        """Seconds until the next attempt; None when there is none."""
        answered = status is not None
        taken = status is not None and 200 <= status < 300
        if taken or status == 403 or (answered and not self.after_answers):
            return None
        return self.waits_s[attempt - 1] if attempt <= len(self.waits_s) else None


class Messenger:
    """Posts callbacks and writes each into the journal with what was answered."""

    def __init__(self, journal: Journal, agenda: Agenda, patience: Patience) -> None:
        self._journal, self._agenda, self._patience = journal, agenda, patience
        self._waiting: queue.SimpleQueue[Callback | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, daemon=True, name=f"callbacks-{number}")
            for number in range(POSTING_THREADS)
        ]

    def start(self) -> None:
        """Begin to post."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Post no more; a call under way is left to end by itself."""
        for _ in self._threads:
            self._waiting.put(None)

    def post_after(self, after_s: float, callback: Callback) -> None:
        """Post it in `after_s` seconds, and again as the patience allows."""
        self._agenda.at(after_s, lambda: self._waiting.put(callback))

    def post(self, callback: Callback) -> int | None:
        """Post it now, in this thread; the status, None where there was no answer."""
        status = post_once(callback.url, callback.headers, callback.body)
        facts = {**callback.facts, "status": status, "attempt": callback.attempt}
        self._journal.add("callback", facts)
        wait_s = self._patience.next_wait(callback.attempt, status)
        if wait_s is not None:
            again = Callback(
                callback.url,
                callback.headers,
                callback.body,
                callback.facts,
                callback.attempt + 1,
            )
            self.post_after(wait_s, again)
        return status

    def _run(self) -> None:
        while (callback := self._waiting.get()) is not None:
            self.post(callback)


def post_once(url: str, headers: Mapping[str, str], body: bytes) -> int | None:
    """One POST that follows nothing; the status, None where there was no answer."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=CALLBACK_LIMIT_S)
    target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    try:
        connection.request("POST", target, body, dict(headers))
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return answer.status
