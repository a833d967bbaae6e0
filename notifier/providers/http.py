"""HTTP towards a provider: a line that posts once, and a client that can only ask.

The sending side opens its connection before the intent and makes one request on it. It never
opens it again, never uses it twice and follows nothing. Until the system has taken the first
byte of the request, trouble is *not accepted*; from then on only a whole answer says what
became of it, and without one the outcome is *unknown*.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import urlsplit

import httpcore2

from notifier.domain.outcome import NotAccepted, Unknown, UnknownReason, about_us
from notifier.domain.reasons import Detail, Reason
from notifier.domain.values import Secret
from notifier.json_objects import Document, document_of
from notifier.loopback import is_loopback
from notifier.ports.asking import CannotTell
from notifier.providers.probing import Probed
from notifier.timed_http import (
    HttpAnswer,
    HttpTroubleError,
    TimedHttp,
    TimedStream,
    bounded_by,
    read_whole,
)
from notifier.timed_sockets import Deadline, open_tcp

MAX_ANSWER_BYTES: Final = 256 * 1024
MAX_FOUND_BYTES: Final = 4 * 1024 * 1024
"""A page of a provider's list is larger than any answer to a submit."""
ASKING_LIMIT_S: Final = 5.0
AGENT: Final = "reset-notice"

_SUBMIT: Final = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "connection": "close",
    "user-agent": AGENT,
}
_ASK: Final = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": AGENT,
}
_BEFORE: Final = {"timeout": Detail.TIMEOUT, "connection_lost": Detail.UNREACHABLE}
_UNKNOWN: Final[Mapping[str, UnknownReason]] = {
    "timeout": Reason.TIMEOUT,
    "connection_lost": Reason.CONNECTION_LOST,
}


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """Where a provider's API lives. ValueError unless https, or http on loopback."""

    scheme: str
    host: str
    port: int
    prefix: str

    @classmethod
    def parse(cls, text: str) -> BaseUrl:
        """From an absolute address without user, query or fragment."""
        parts = urlsplit(text)
        host = parts.hostname or ""
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
        odd = not text.isascii() or parts.username is not None or parts.query or parts.fragment
        if not host or not safe or odd:
            message = "a provider's address must be https, or http on loopback"
            raise ValueError(message)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, host, port, parts.path.rstrip("/"))

    def at(self, path: str) -> httpcore2.URL:
        """The address of `path`, which is ours and already encoded."""
        return httpcore2.URL(
            scheme=self.scheme, host=self.host, port=self.port, target=self.prefix + path
        )

    def named(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers with Host first, brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return {"host": host if usual else f"{host}:{self.port}", **headers}


@cache
def usual_tls() -> ssl.SSLContext:
    """The system's authorities, loaded once; nobody changes it."""
    return ssl.create_default_context()


class HttpLine:
    """An open connection that can carry one POST."""

    def __init__(self, base: BaseUrl, stream: TimedStream) -> None:
        self._base = base
        self._stream = stream
        self._used = False

    def post(
        self, path: str, headers: Mapping[str, str], body: bytes, budget_s: float
    ) -> HttpAnswer | NotAccepted | Unknown:
        """Make the one request; `budget_s` bounds all of it, also an answer that drips."""
        if self._used:
            return NotAccepted(Detail.PROVIDER_ERROR, "line_used")
        self._used = True
        try:
            with bounded_by(Deadline.after(budget_s)):
                if not self._stream.is_quiet():
                    return NotAccepted(Detail.UNREACHABLE)
                answer = self._exchange(path, headers, body)
        except HttpTroubleError as trouble:
            return self._failed(trouble.what)
        # An answer that came before the first byte of the request is no answer to it.
        return answer if self._stream.has_written else NotAccepted(Detail.PROVIDER_ERROR)

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):
            self._stream.close()

    def _exchange(self, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        url = self._base.at(path)
        line = httpcore2.HTTP11Connection(origin=url.origin, stream=self._stream)
        given = list(self._base.named(_SUBMIT | dict(headers)).items())
        with line.stream("POST", url, headers=given, content=body) as answer:
            return read_whole(answer, MAX_ANSWER_BYTES)

    def _failed(self, what: str) -> NotAccepted | Unknown:
        if not self._stream.has_written:
            return NotAccepted(_BEFORE.get(what, Detail.PROVIDER_ERROR))
        if self._stream.has_ended:
            return Unknown(Reason.CONNECTION_LOST)
        return Unknown(_UNKNOWN.get(what, Reason.UNREADABLE_ANSWER))


def open_line(
    base: BaseUrl, tls_context: ssl.SSLContext, budget_s: float
) -> HttpLine | NotAccepted:
    """Look the host up, connect and encrypt, in `budget_s` seconds at most."""
    deadline = Deadline.after(budget_s)
    try:
        sock = open_tcp(base.host, base.port, deadline)
        if base.scheme == "https":
            try:
                sock.settimeout(deadline.left())
                sock = tls_context.wrap_socket(sock, server_hostname=base.host)
            except BaseException:
                sock.close()
                raise
    except ssl.SSLCertVerificationError:
        return about_us(Detail.PROVIDER_ERROR, "tls_certificate")
    except ssl.SSLError:
        return about_us(Detail.PROVIDER_ERROR, "tls_failed")
    except TimeoutError:
        return NotAccepted(Detail.TIMEOUT)
    except OSError:
        return NotAccepted(Detail.UNREACHABLE)
    return HttpLine(base, TimedStream(sock))


def basic(user: str, password: Secret) -> str:
    """The value of an Authorization header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password.reveal()}".encode()).decode()


class AskingHttp:
    """A client that refuses anything but GET, for the side that only asks (promise P4).

    Connections are kept alive and shared by threads.
    """

    def __init__(self, base: BaseUrl, tls_context: ssl.SSLContext) -> None:
        self._base = base
        self._http = TimedHttp(tls_context, "GET")

    def request(
        self, method: str, path: str, headers: Mapping[str, str], limit_s: float
    ) -> HttpAnswer | CannotTell:
        """Ask once. MethodRefusedError for anything but GET, before a byte is sent."""
        try:
            return self._http.request(
                method,
                self._base.at(path),
                self._base.named(_ASK | dict(headers)),
                limit_s=limit_s,
                max_bytes=MAX_FOUND_BYTES,
            )
        except HttpTroubleError as trouble:
            return CannotTell(trouble.what)

    def get(self, path: str, headers: Mapping[str, str], deadline: Deadline) -> Asked:
        """The document at `path`, or why there is none."""
        try:
            limit_s = min(deadline.left(), ASKING_LIMIT_S)
        except TimeoutError:
            return CannotTell("timeout")
        answer = self.request("GET", path, headers, limit_s)
        if isinstance(answer, CannotTell):
            return answer
        document = document_of(answer.body)
        if document is None:
            return CannotTell(f"status_{answer.status}" if answer.status != 200 else "not_json")
        return Told(answer.status, document)

    def close(self) -> None:
        """Close the idle connections."""
        self._http.close()


@dataclass(frozen=True, slots=True, repr=False)
class Told:
    """A status and the JSON object that came with it."""

    status: int
    document: Document


Asked = Told | CannotTell


def probed(asked: Asked) -> Probed:
    """Whether a provider let us in."""
    if isinstance(asked, CannotTell):
        return Probed(ok=False, what=asked.what)
    if asked.status in (401, 403):
        return Probed(ok=False, what="auth_error")
    return Probed(ok=asked.status == 200, what=f"answered {asked.status}")
