"""Posts signed events over kept-open connections, in a process that costs little.

    python -m tests.bench.load < order.json > answers.json

Every request's bytes are made before the first is sent. Without a rate each connection posts
as soon as it has its answer (a closed loop); with one, posts fall due at even distances
whatever the answers do, and a late answer is measured from the moment the post was due.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from notifier.signatures import parse_secret, signed_headers
from peers.events import EVENTS_PATH, LIFE_S, body_of, build_event

ROOT = Path(__file__).resolve().parents[2]
LONGEST_READ = 65_536
ANSWERS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Order:
    """What to post. `prefix` and `asked_at` (Unix time) make the events: the same, the same."""

    url: str
    secret: str
    prefix: str
    asked_at: float
    connections: int
    count: int
    seconds: float
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: which event's, when it was due and when it came (Unix time), and its status."""

    number: int
    due_at: float
    came_at: float
    status: int

    @property
    def took_s(self) -> float:
        return self.came_at - self.due_at


def tag_of(prefix: str, number: int) -> str:
    return f"{prefix}-{number}"


def post(order: Order) -> list[Answer]:
    """Have a process of its own carry out the order."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.load"],
        cwd=ROOT,
        input=json.dumps(asdict(order)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=order.seconds + 120,
    )
    return [Answer(*each) for each in json.loads(done.stdout)]


def ready_made(order: Order) -> list[bytes]:
    """The bytes of every request of the order."""
    key, host = parse_secret(order.secret), urlsplit(order.url).netloc
    asked = datetime.fromtimestamp(order.asked_at, UTC)
    times: dict[str, Any] = {
        "requested_at": asked.isoformat(),
        "expires_at": (asked + timedelta(seconds=LIFE_S)).isoformat(),
    }
    return [
        _request(host, key, body_of(build_event(tag=tag_of(order.prefix, number), **times)))
        for number in range(order.count)
    ]


def _request(host: str, key: bytes, body: bytes) -> bytes:
    message_id = f"msg_{time.monotonic_ns():x}"
    headers = {
        "host": host,
        "content-type": "application/json",
        "content-length": str(len(body)),
        **signed_headers(key, message_id, int(time.time()), body),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {EVENTS_PATH} HTTP/1.1\r\n{head}\r\n".encode() + body


class Poster:
    """Carries out one order on one thread."""

    def __init__(self, order: Order, requests: list[bytes]) -> None:
        self._order, self._requests = order, requests
        self._next = 0
        self._selector = selectors.DefaultSelector()
        self._idle: deque[_Line] = deque()
        self._offset = time.time() - time.perf_counter()
        self.answers: list[Answer] = []

    def run(self) -> list[Answer]:
        parts = urlsplit(self._order.url)
        for _ in range(self._order.connections):
            line = _Line(parts.hostname or "127.0.0.1", parts.port or 80)
            self._selector.register(line.socket, selectors.EVENT_READ, line)
            self._idle.append(line)
        begin = time.perf_counter()
        end = begin + self._order.seconds
        while (now := time.perf_counter()) < end and self._left():
            self._take(self._feed(begin, now, end))
        give_up = time.perf_counter() + ANSWERS_WITHIN_S
        while len(self._idle) < self._order.connections and time.perf_counter() < give_up:
            self._take(0.1)
        return self.answers

    def _left(self) -> bool:
        return self._next < len(self._requests)

    def _feed(self, begin: float, now: float, end: float) -> float:
        """Post what is due; gives how long nothing else will be."""
        rate = self._order.rate
        while self._idle and self._left():
            due = now if rate is None else begin + self._next / rate
            if due > now:
                return due - now
            self._idle.popleft().send(self._requests[self._next], self._next, due)
            self._next += 1
        return end - now

    def _take(self, wait_s: float) -> None:
        for key, _ in self._selector.select(wait_s):
            line: _Line = key.data
            status = line.receive()
            if status is not None:
                came = time.perf_counter()
                self.answers.append(
                    Answer(line.number, line.due + self._offset, came + self._offset, status)
                )
                self._idle.append(line)


class _Line:
    """One connection; it waits for at most one answer."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number, self.due = 0, 0.0
        self._received = b""

    def send(self, request: bytes, number: int, due: float) -> None:
        self.number, self.due, self._received = number, due, b""
        self.socket.sendall(request)

    def receive(self) -> int | None:
        """The status once the answer is whole."""
        news = self.socket.recv(LONGEST_READ)
        if not news:
            message = "the server hung up"
            raise ConnectionError(message)
        self._received += news
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank or len(body) < _length(head):
            return None
        return int(head[9:12])


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])


def main() -> None:
    fields: dict[str, Any] = json.load(sys.stdin)
    order = Order(**fields)
    answers = Poster(order, ready_made(order)).run()
    rows = [(each.number, each.due_at, each.came_at, each.status) for each in answers]
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
