"""Plain HTTP for the tests of the stand-ins, and an app's callback address that takes notes."""

from __future__ import annotations

import http.client
import json
import queue
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from peers.web import Reply, Request, WebServer


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def call(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 5.0,
) -> Answer:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    target = f"{parts.path}{'?' + parts.query if parts.query else ''}"
    try:
        connection.request(method, target, body, dict(headers or {}))
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read())
    finally:
        connection.close()


def with_query(url: str, query: Mapping[str, object]) -> str:
    return f"{url}?{urlencode(query)}"


class CallbackAddress:
    """What an app's callback address was sent; `statuses` are answered in turn, then 204."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self._came: queue.Queue[Request] = queue.Queue()
        self._web = WebServer({}, otherwise=self._take)
        self.url = self._web.url

    def _take(self, request: Request) -> Reply:
        self._came.put(request)
        return Reply(self.statuses.pop(0) if self.statuses else 204)

    def next(self, within_s: float = 5.0) -> Request:
        return self._came.get(timeout=within_s)

    def start(self) -> None:
        self._web.start()

    def close(self) -> None:
        self._web.close()


@contextmanager
def a_callback_address() -> Iterator[CallbackAddress]:
    address = CallbackAddress()
    address.start()
    try:
        yield address
    finally:
        address.close()
