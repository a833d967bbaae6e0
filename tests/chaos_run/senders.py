"""Posts every event as an auth service would: the same body, until an answer it can believe.

No answer, a 5xx and a 429 are asked again; anything else is final. Some events are posted
again although they were answered, and must get the same answer.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from peers.events import Event
from tests.chaos_run.plan import Case, Plan

GIVE_UP_S = 180.0
WAITS_S = (0.2, 1.0)


class NotYet(Exception):
    """No answer that can be believed; the same is to be sent again."""


class Refused(Exception):
    """A definite no."""


class Line(Protocol):
    """One sender's way to whoever takes events."""

    def send(self, event: Event) -> str:
        """Send it once; the identity in the answer. Raises `NotYet` or `Refused`."""

    def close(self) -> None:
        """Hang up."""


@dataclass(slots=True)
class Told:
    """What the senders were told, by event id. Times are Unix time."""

    events: dict[str, Event] = field(default_factory=dict)
    identity: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    given_up: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    """Answered again, with another identity."""
    sends: int = 0
    repeats: int = 0
    last_at: float = 0.0


class Senders:
    """Several threads that post the cases in order, no faster than they are allowed to."""

    def __init__(
        self,
        plan: Plan,
        cases: Sequence[Case],
        line: Callable[[], Line],
        register: Callable[[Case], None],
    ) -> None:
        self._plan, self._line, self._register = plan, line, register
        self._left = deque(cases)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._begun = time.monotonic()
        self._taken = 0
        self.allowed: float = plan.events
        """How many events may have been posted by now; raised as the run goes on."""
        self.told = Told()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"sender-{number}", daemon=True)
            for number in range(plan.senders)
        ]

    @contextmanager
    def sending(self) -> Iterator[Senders]:
        """Post for the length of the block; what is not posted by then stays unposted."""
        self._begun = time.monotonic()
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    @property
    def posted(self) -> int:
        """Events that have been taken up."""
        return self._taken

    def done(self) -> bool:
        """Whether every event has had its answer."""
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, number: int) -> None:
        chance = random.Random(f"{self._plan.seed} {number}")
        line = self._line()
        try:
            while (case := self._next()) is not None:
                self._post(line, case, chance)
        finally:
            line.close()

    def _next(self) -> Case | None:
        with self._lock:
            if not self._left:
                return None
            while not self._may_go_on():
                if self._stop.wait(0.02):
                    return None
            self._taken += 1
            return self._left.popleft()

    def _may_go_on(self) -> bool:
        due = self._begun + self._taken / self._plan.rate
        return time.monotonic() >= due and self._taken < self.allowed

    def _post(self, line: Line, case: Case, chance: random.Random) -> None:
        while not self._registered(case):
            if self._stop.wait(WAITS_S[0]):
                return
        event = case.event()
        self.told.events[case.event_id] = event
        identity = self._insist(line, event, chance)
        if identity is None:
            return
        self.told.identity[case.event_id] = identity
        self.told.last_at = time.time()
        for _ in range(case.repeats):
            again = self._insist(line, event, chance)
            self.told.repeats += 1
            if again not in (identity, None):
                self.told.contradicted.append(case.event_id)

    def _registered(self, case: Case) -> bool:
        try:
            self._register(case)
        except OSError:
            return False
        return True

    def _insist(self, line: Line, event: Event, chance: random.Random) -> str | None:
        give_up = time.monotonic() + GIVE_UP_S
        while time.monotonic() < give_up:
            self.told.sends += 1
            try:
                return line.send(event)
            except NotYet:
                if self._stop.wait(chance.uniform(*WAITS_S)):
                    return None
            except Refused as refusal:
                self.told.refused[event["event_id"]] = str(refusal)
                return None
        self.told.given_up.append(event["event_id"])
        return None
