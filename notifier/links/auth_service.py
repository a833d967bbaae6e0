"""Asking the auth service, at send time, for the link and where to send it.

Every shape of answer becomes one of four words: granted, withheld, gone, unavailable. What
cannot be read, or is not safe to pass on, is *unavailable*: it is asked for again until the
stop time, so a fault over there heals without us deciding anything on a guess. Of an answer
that is refused, nothing but a word of ours (`LinkFault`) and its status leaves this module.
"""

from __future__ import annotations

import json
import re
import ssl
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

import httpcore2

from notifier.domain.call_limits import LINK_LIMIT_S
from notifier.domain.link_faults import LinkFault, of_status
from notifier.domain.states import Channel
from notifier.domain.values import Destination, ResetLink
from notifier.json_objects import document_of
from notifier.loopback import is_loopback
from notifier.ports.links import (
    LinkAnswer,
    LinkGone,
    LinkGranted,
    LinkRequest,
    LinkUnavailable,
    LinkWithheld,
)
from notifier.signatures import signed_headers
from notifier.timed_http import HttpAnswer, HttpTroubleError, TimedHttp

MAX_ANSWER_BYTES: Final = 64 * 1024
MAX_LINK: Final = 2048
MAX_TIME: Final = 40

Check = Callable[[Channel, str], Destination | None]
Tell = Callable[[LinkRequest, LinkUnavailable], None]
"""Called with each request that got no usable answer, in the thread that asked."""

_Withheld = Literal["no_destination", "not_permitted"]
_Gone = Literal["used", "superseded", "revoked", "expired"]
_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "identity",
}
_URL: Final = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)


_TROUBLES: Final = {
    "timeout": LinkFault.NO_ANSWER_IN_TIME,
    "no_connection": LinkFault.NO_CONNECTION,
    "tls_failed": LinkFault.TLS_FAILED,
    "connection_lost": LinkFault.LINE_BROKE,
    "not_http": LinkFault.NOT_HTTP,
    "encoded": LinkFault.ANSWER_ENCODED,
    "too_large": LinkFault.ANSWER_TOO_LARGE,
}


class _UnusableError(Exception):
    """The answer (a 200) cannot be used; `fault` says for which part, never with its value."""

    def __init__(self, fault: LinkFault) -> None:
        super().__init__(fault)
        self.fault = fault


class AuthService:
    """The link source behind `url`. One request a question, no retry; shared by threads.

    `check` says whether a destination can be sent to and in which form. `now` gives the time
    that the signature carries. `tell` hears of each answer that cannot be used. ValueError for
    a URL that is neither https nor loopback.
    """

    def __init__(
        self,
        url: str,
        secret: bytes,
        check: Check,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        tell: Tell = lambda _request, _fault: None,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        if not is_safe_url(url):
            message = "the link service must be https, or http on loopback"
            raise ValueError(message)
        self._url = httpcore2.URL(url)
        self._secret = secret
        self._check = check
        self._now = now
        self._tell = tell
        self._http = TimedHttp(tls_context or ssl.create_default_context(), "POST")

    def ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        """Ask once, within `budget_s` and never longer than the three seconds of the contract."""
        found = self._ask(request, budget_s)
        if isinstance(found, LinkUnavailable):
            self._tell(request, found)
        return found

    def close(self) -> None:
        """Close the idle connections."""
        self._http.close()

    def _ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        try:
            return self._understand(request, self._post(request, min(budget_s, LINK_LIMIT_S)))
        except HttpTroubleError as trouble:
            return LinkUnavailable(_TROUBLES[trouble.what])
        except _UnusableError as unusable:
            return LinkUnavailable(unusable.fault, HTTPStatus.OK)

    def _post(self, request: LinkRequest, limit_s: float) -> HttpAnswer:
        body = json.dumps(
            {
                "reset_request_id": request.reset_request_id,
                "event_id": request.event_id,
                "channel": request.channel,
                "purpose": request.purpose,
            }
        ).encode()
        signed = signed_headers(
            self._secret, f"msg_{uuid.uuid4().hex}", int(self._now().timestamp()), body
        )
        return self._http.request(
            "POST", self._url, _HEADERS | signed, body, limit_s=limit_s, max_bytes=MAX_ANSWER_BYTES
        )

    def _understand(self, request: LinkRequest, answer: HttpAnswer) -> LinkAnswer:
        match answer.status:
            case 200:
                return self._granted(request, _document(answer.body))
            case 404:
                return _withheld(document_of(answer.body) or {})
            case 410:
                return _gone(document_of(answer.body) or {})
            case status:
                return LinkUnavailable(of_status(status), status)

    def _granted(self, request: LinkRequest, document: dict[str, Any]) -> LinkAnswer:
        given = document.get("destination")
        if not isinstance(given, str):
            raise _UnusableError(LinkFault.NO_DESTINATION_FIELD)
        if request.purpose == "look_up":
            found = self._check(request.channel, given)
            return LinkGranted(found, None) if found else LinkWithheld("invalid_destination")
        link = _reset_link(document)
        expires_at = _expiry(document)
        found = self._check(request.channel, given)
        if found is None:
            return LinkWithheld("invalid_destination")
        return LinkGranted(found, link, expires_at, _name(document))


def is_safe_url(url: str) -> bool:
    """Whether `url` is https (or http on loopback), whole, and of URL characters only.

    RFC 3986's alphabet leaves no room for white space, control characters or look-alike
    letters. A user part is refused: it is there to make a host look like another.
    """
    if not _URL.fullmatch(url):
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def _document(body: bytes) -> dict[str, Any]:
    document = document_of(body)
    if document is None:
        raise _UnusableError(LinkFault.NOT_JSON)
    return document


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _reset_link(document: dict[str, Any]) -> ResetLink:
    url = document.get("reset_url")
    if not isinstance(url, str) or not url:
        raise _UnusableError(LinkFault.NO_RESET_URL_FIELD)
    if len(url) > MAX_LINK:
        raise _UnusableError(LinkFault.RESET_URL_UNUSABLE)
    if not is_safe_url(url):
        raise _UnusableError(_why_unsafe(url))
    return ResetLink(url)


def _why_unsafe(url: str) -> LinkFault:
    """Whether plain http beyond loopback is all that is wrong with it."""
    scheme, _, rest = url.partition("://")
    lacks_tls = scheme == "http" and is_safe_url(f"https://{rest}")
    return LinkFault.RESET_URL_NOT_HTTPS if lacks_tls else LinkFault.RESET_URL_UNUSABLE


def _expiry(document: dict[str, Any]) -> datetime | None:
    """RFC 3339 with an offset. Not ignored when unreadable: it can only shorten the life."""
    text = document.get("expires_at")
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > MAX_TIME or not _TIME.fullmatch(text.upper()):
        raise _UnusableError(LinkFault.EXPIRES_AT_UNREADABLE)
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _UnusableError(LinkFault.EXPIRES_AT_UNREADABLE) from None


def _name(document: dict[str, Any]) -> str | None:
    """Only decoration, so an odd one is left out instead of holding up the message."""
    name = document.get("name")
    return name if isinstance(name, str) and _is_encodable(name) else None


def _withheld(document: dict[str, Any]) -> LinkAnswer:
    reason = document.get("reason")
    for known in get_args(_Withheld):
        if reason == known:
            return LinkWithheld(known)
    return LinkUnavailable(LinkFault.HTTP_404, HTTPStatus.NOT_FOUND)


def _gone(document: dict[str, Any]) -> LinkAnswer:
    reason = document.get("reason")
    for known in get_args(_Gone):
        if reason == known:
            return LinkGone(known)
    return LinkUnavailable(LinkFault.HTTP_410, HTTPStatus.GONE)
