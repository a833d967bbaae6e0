"""What Resend keeps of idempotency keys: a request's content, and its answer once there is one."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import Enum

from peers.outbox import Message


class Standing(Enum):
    """How a request stands to its key."""

    FIRST = "nobody used the key before"
    RUNNING = "the first request under it has not ended"
    OTHER = "it was used with other content"
    AGAIN = "the same request was answered already"


@dataclass(slots=True)
class _Used:
    content: bytes
    message: Message | None = None


class Keys:
    """The keys of one team, safe for several threads; never forgotten while this runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, _Used] = {}

    def begin(self, key: str, content: bytes) -> tuple[Standing, Message | None]:
        """Take a request under its key; with `AGAIN` comes the message that the first one made."""
        with self._lock:
            used = self._used.get(key)
            if used is None:
                self._used[key] = _Used(content)
                return Standing.FIRST, None
            if used.content != content:
                return Standing.OTHER, None
            if used.message is None:
                return Standing.RUNNING, None
            return Standing.AGAIN, used.message

    def done(self, key: str, message: Message) -> None:
        """The request under `key` made this message."""
        with self._lock:
            self._used[key].message = message

    def forget(self, key: str) -> None:
        """The request under `key` never arrived, or made no message."""
        with self._lock:
            self._used.pop(key, None)
