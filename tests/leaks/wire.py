"""A client that keeps every answer, byte for byte, for the search."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import zlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from tests.leaks.search import Haystack

CSRF = re.compile(r'name="csrf_token"[^>]*value="([^"]+)"')
ADDRESS = re.compile(r'(?:href|hx-get)="(/[^"]*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")


@dataclass(slots=True)
class Wire:
    """Asks one server as one caller. `answers` and `cookies` hold all that it said."""

    who: str
    port: int
    answers: bytearray = field(default_factory=bytearray)
    cookies: bytearray = field(default_factory=bytearray)
    jar: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request; header names are written with `_` for `-`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.jar:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.jar.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            answer = Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()
        self._keep(answer)
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, None, **headers)

    def submit(self, path: str, form_of: str, **fields: str) -> Answer:
        """Post a form as the browser would: with the token of the page it stands on."""
        page = self.get(form_of)
        token = CSRF.search(page.text)
        assert token, f"{form_of} has no form: {page.status}"
        content = urlencode({"csrf_token": token[1], **fields}).encode()
        return self.ask(
            "POST", path, content, content_type="application/x-www-form-urlencoded",
            sec_fetch_site="same-origin",
        )  # fmt: skip

    def follow(self, answer: Answer) -> Answer:
        """Where a redirect leads."""
        assert answer.status in {302, 303}, (answer.status, answer.text[:300])
        return self.get(_path(urljoin("/", answer.header("Location"))))

    def crawl(self, *starts: str, most: int) -> dict[str, int]:
        """Get these and what they link to; paths with their status."""
        waiting, seen = list(starts), dict[str, int]()
        while waiting and len(seen) < most:
            path = waiting.pop(0)
            if path in seen or path.startswith(("/static/", "/logout", "/login")):
                continue
            answer = self.get(path)
            seen[path] = answer.status
            if "html" in answer.header("Content-Type"):
                found = ADDRESS.findall(answer.text)
                waiting += [each.replace("&amp;", "&") for each in found]
        return seen

    def raw(self, request: bytes) -> None:
        """Send bytes that need not be HTTP, and keep what is said until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as line:
            line.sendall(request)
            line.shutdown(socket.SHUT_WR)
            while part := line.recv(65_536):
                self.answers += part

    def session_secrets(self) -> list[str]:
        """The cookie as it is sent, and what is inside it."""
        found = list(self.jar.values())
        for value in self.jar.values():
            content = json.loads(_payload(value))
            found += [str(each) for each in content.values() if isinstance(each, str)]
        return found

    def told(self) -> Haystack:
        """All that was said but for cookies: a browser must be told its own."""
        return Haystack(f"answers to {self.who}", bytes(self.answers))

    def kept(self) -> Haystack:
        """The cookies, as sent and in clear."""
        return Haystack(f"cookies of {self.who}", bytes(self.cookies))

    def _keep(self, answer: Answer) -> None:
        self.answers += f"\n\n{answer.status}\n".encode()
        for name, value in answer.headers:
            if name.lower() != "set-cookie":
                self.answers += f"{name}: {value}\n".encode()
                continue
            self.cookies += value.encode() + b"\n"
            pair = value.partition(";")[0]
            key, _, content = pair.partition("=")
            if content:
                self.jar[key] = content
                self.cookies += _payload(content) + b"\n"
            else:
                self.jar.pop(key, None)
        self.answers += b"\n" + answer.body


def _payload(cookie: str) -> bytes:
    """What a signed cookie says, in clear."""
    packed = cookie.startswith(".")
    part = cookie.lstrip(".").partition(".")[0]
    content = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    return zlib.decompress(content) if packed else content


def _path(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")
