"""The messages that a provider's stand-in holds, and what has happened to each."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from peers.courses import Course, Step

KEPT_MESSAGES = 50_000
Facts = dict[str, object]


@dataclass(frozen=True, slots=True)
class Event:
    """One step that has happened."""

    step: Step
    at: datetime
    number: int


@dataclass(slots=True)
class Message:
    """One message that the provider holds, and what has happened to it."""

    identity: str
    recipient: str
    reference: str | None
    given: Mapping[str, Any]
    course: Course
    at: datetime
    seen_from: float
    events: list[Event] = field(default_factory=list)

    def facts(self) -> Facts:
        """What stands in every journal entry about it."""
        return {
            "message_id": self.identity,
            "reference": self.reference,
            "recipient": self.recipient,
            "fate": self.course.name,
        }


class Outbox:
    """The newest messages, safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Message] = {}
        self._events = 0

    def keep(self, message: Message) -> None:
        """Keep it; the oldest is forgotten where there are too many."""
        with self._lock:
            self._kept[message.identity] = message
            if len(self._kept) > KEPT_MESSAGES:
                del self._kept[next(iter(self._kept))]

    def add_event(self, message: Message, step: Step) -> Event:
        """Write down that a step has happened, now."""
        with self._lock:
            self._events += 1
            event = Event(step, datetime.now(UTC), self._events)
            if not step.stranger:
                message.events = [*message.events, event]
            return event

    def get(self, identity: str) -> Message | None:
        """One message, whether or not a look would show it."""
        with self._lock:
            return self._kept.get(identity)

    def seen(self) -> list[Message]:
        """What a look can find now, newest first."""
        with self._lock:
            newest = list(reversed(self._kept.values()))
        now = time.monotonic()
        return [message for message in newest if message.seen_from <= now]
