"""What every request of ours has: an id that is safe to log, and ids in paths that are sound."""

from __future__ import annotations

import re
import time
import uuid
from typing import Final

import structlog
from flask import Flask, Response, g, request
from werkzeug.exceptions import NotFound
from werkzeug.routing import BaseConverter, ValidationError

from notifier.domain.event import ID_PATTERN, is_id
from notifier.logs import log
from notifier.metrics import Metrics

HEADER: Final = "X-Request-Id"
INERT: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""For answers to programs, in case a browser is shown one; a page brings its own."""

_SOUND = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_TRACEPARENT = re.compile(
    r"(?!ff)(?!00-.{52}.)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class IdConverter(BaseConverter):
    """`<id:name>` in a rule: an id from outside. Anything else is a 404 before any look-up."""

    regex = ID_PATTERN
    part_isolating = True

    def to_python(self, value: str) -> str:
        """The id, byte for byte; the router's own check lets a final newline pass."""
        if not is_id(value):
            raise ValidationError
        return value


class NoticeIdConverter(BaseConverter):
    """`<notice:name>` in a rule: a notice's id as we write it, a lower-case UUID."""

    regex = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    part_isolating = True

    def to_python(self, value: str) -> str:
        """The id; see `IdConverter` for why its length is checked again."""
        if len(value) != len(str(uuid.NAMESPACE_DNS)):
            raise ValidationError
        return value


def request_id() -> str:
    """The id of this request: the caller's where it is sound, else a fresh one."""
    if "request_id" not in g:
        offered = request.headers.get(HEADER, "")
        g.request_id = offered if _SOUND.fullmatch(offered) else uuid.uuid4().hex
    return str(g.request_id)


def trace_id() -> str | None:
    """The trace id of a sound `traceparent` header (W3C Trace Context, section 3.2), or None."""
    match = _TRACEPARENT.fullmatch(request.headers.get("traceparent", ""))
    return match[1] if match else None


def install_requests(app: Flask, metrics: Metrics) -> None:
    """Teach `app` the converters, the request id on every answer, and to log and time each.

    Before any blueprint is registered: the rules need the converters.
    """
    # Else Flask answers a redirect that no handler sees, and that repeats the address's query.
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    app.url_map.converters["id"] = IdConverter
    app.url_map.converters["notice"] = NoticeIdConverter

    @app.before_request
    def begin() -> None:
        g.began = time.perf_counter()
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id())
        if request.environ["PATH_INFO"].startswith("//"):  # Werkzeug reads it as one slash
            raise NotFound

    @app.after_request
    def end(response: Response) -> Response:
        response.headers[HEADER] = request_id()
        for name, value in INERT.items():
            response.headers.setdefault(name, value)
        took_s = time.perf_counter() - g.get("began", time.perf_counter())
        metrics.request(request.endpoint, response.status_code, took_s)
        log.info(
            "request",
            method=request.method if request.method in _METHODS else "other",
            endpoint=request.endpoint or "none",
            http_status=response.status_code,
            duration_ms=round(took_s * 1000, 1),
        )
        return response
