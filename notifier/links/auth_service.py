"""Asking the auth service, at send time, for the link and where to send it.

Every shape of answer becomes one of four words: granted, withheld, gone, unavailable. What
cannot be read, or is not safe to pass on, is *unavailable*: it is asked for again until the
stop time, so a fault over there heals without us deciding anything on a guess. Of an answer
that is refused, nothing but a short code leaves this module.
"""

from __future__ import annotations

import json
import re
import ssl
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

import httpcore2

from notifier.domain.call_limits import LINK_LIMIT_S
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

Check = Callable[[Channel, str], Destination | None]

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


class _UnusableError(Exception):
    """The answer cannot be used; `what` names the part, never the value."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class AuthService:
    """The link source behind `url`. One request a question, no retry; shared by threads.

    `check` says whether a destination can be sent to and in which form. `now` gives the time
    that the signature carries. ValueError for a URL that is neither https nor loopback.
    """

    def __init__(
        self,
        url: str,
        secret: bytes,
        check: Check,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        if not is_safe_url(url):
            message = "the link service must be https, or http on loopback"
            raise ValueError(message)
        self._url = httpcore2.URL(url)
        self._secret = secret
        self._check = check
        self._now = now
        self._http = TimedHttp(tls_context or ssl.create_default_context(), "POST")

    def ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        """Ask once, within `budget_s` and never longer than the three seconds of the contract."""
        try:
            return self._understand(request, self._post(request, min(budget_s, LINK_LIMIT_S)))
        except (HttpTroubleError, _UnusableError) as trouble:
            return LinkUnavailable(trouble.what)

    def close(self) -> None:
        """Close the idle connections."""
        self._http.close()

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
                return _withheld(_document(answer.body))
            case 410:
                return _gone(_document(answer.body))
            case status:
                return LinkUnavailable(f"status_{status}")

    def _granted(self, request: LinkRequest, document: dict[str, Any]) -> LinkAnswer:
        given = document.get("destination")
        if not isinstance(given, str):
            raise _UnusableError(what="destination")
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
        raise _UnusableError(what="not_json")
    return document


def _text(document: dict[str, Any], member: str, longest: int) -> str:
    value = document.get(member)
    if not isinstance(value, str) or not _is_encodable(value):
        raise _UnusableError(what=member)
    if not 0 < len(value) <= longest:
        raise _UnusableError(what=member)
    return value


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _reset_link(document: dict[str, Any]) -> ResetLink:
    url = _text(document, "reset_url", MAX_LINK)
    if not is_safe_url(url):
        raise _UnusableError(what="reset_url")
    return ResetLink(url)


def _expiry(document: dict[str, Any]) -> datetime | None:
    """RFC 3339 with an offset. Not ignored when unreadable: it can only shorten the life."""
    if document.get("expires_at") is None:
        return None
    text = _text(document, "expires_at", 40).upper()
    if not _TIME.fullmatch(text):
        raise _UnusableError(what="expires_at")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _UnusableError(what="expires_at") from None


def _name(document: dict[str, Any]) -> str | None:
    """Only decoration, so an odd one is left out instead of holding up the message."""
    name = document.get("name")
    return name if isinstance(name, str) and _is_encodable(name) else None


def _withheld(document: dict[str, Any]) -> LinkAnswer:
    reason = document.get("reason")
    for known in get_args(_Withheld):
        if reason == known:
            return LinkWithheld(known)
    return LinkUnavailable("status_404")


def _gone(document: dict[str, Any]) -> LinkAnswer:
    reason = document.get("reason")
    for known in get_args(_Gone):
        if reason == known:
            return LinkGone(known)
    return LinkUnavailable("status_410")
