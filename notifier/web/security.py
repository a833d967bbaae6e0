"""What protects every page: headers, the session cookie's settings, and who may post.

Policy of the pages: nothing inline, nothing from elsewhere, nothing kept by the browser.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from flask import Flask, Request, Response, session
from flask import request as current_request
from werkzeug.exceptions import BadRequest
from werkzeug.middleware.proxy_fix import ProxyFix

from notifier.loopback import is_loopback

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)

HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": (
        "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
        "magnetometer=(), microphone=(), payment=(), usb=()"
    ),
}
HSTS: Final = "max-age=31536000; includeSubDomains"
VARIES_BY: Final = ("Cookie", "HX-Request", "HX-Request-Type", "HX-History-Restore-Request")

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_FIELD: Final = "csrf_token"
PASSED_ON: Final = (
    "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP",
)  # fmt: skip
"""Headers of which a proxy sends one or another, where it does not send all."""

_HERE: Final = "loopback"
_SIGNED_IN: Final = "session"
_VISIT: Final = "visit"
_LOCAL_PATH: Final = re.compile(r"/(?![/\\])[!-\[\]-~]{0,1023}")


def cookie_settings(secret_keys: Sequence[str | bytes], *, secure: bool) -> dict[str, Any]:
    """Flask settings for the session cookie; the first key signs, the others still verify.

    Over https the cookie is bound to this host and path by its name's prefix; a browser takes
    such a name over plain http from nobody, so loopback has a name of its own.
    """
    return {
        "SECRET_KEY": secret_keys[0],
        "SECRET_KEY_FALLBACKS": list(secret_keys[1:]),
        "SESSION_COOKIE_NAME": "__Host-notifier" if secure else "notifier-loopback",
        "SESSION_COOKIE_SECURE": secure,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "SESSION_COOKIE_PATH": "/",
        "SESSION_REFRESH_EACH_REQUEST": False,
        "PERMANENT_SESSION_LIFETIME": timedelta(hours=10),
    }


def add_headers(response: Response, *, secure: bool) -> Response:
    """Set every protective header; what was set on purpose before stays."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if secure:
        response.headers.setdefault("Strict-Transport-Security", HSTS)
    return response


def add_page_headers(response: Response, *, secure: bool) -> Response:
    """The same, for an answer that belongs to a person: never kept, and it has two forms."""
    response.headers["Cache-Control"] = "no-store"
    response.vary.update(VARIES_BY)
    return add_headers(response, secure=secure)


def comes_from_elsewhere(request: Request) -> bool:
    """Whether another site made the browser send this unsafe request.

    Browsers say where a request comes from; programs say nothing, and carry no cookie.
    """
    if request.method in SAFE_METHODS:
        return False
    return request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin"


def is_led_from_elsewhere(request: Request) -> bool:
    """Whether another site's page led here: not the person's own typing, not a page of ours."""
    return request.headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"}


def holds_nul(request: Request) -> bool:
    """Whether a NUL stands in a path, a query or a form.

    No browser sends one for anything that somebody typed, and Postgres keeps none.
    """
    fields = (*request.args.items(multi=True), *request.form.items(multi=True))
    return "\0" in request.path or any("\0" in text for field in fields for text in field)


def behind_proxies(app: Flask, hops: int) -> None:
    """Take the client's address and scheme from what the nearest `hops` proxies say of it.

    Exactly so many: what stands before their entries was written by the client himself, and
    where fewer entries came, nobody is believed. Never the host, and nothing that is signed
    depends on any of it: callbacks are verified against the public address of the settings.
    """
    if hops:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=0, x_port=0, x_prefix=0
        )


class WrongHost(BadRequest):
    """A page was asked for under another name than the public address's."""


def only_on_host(app: Flask, public_url: str, blueprint: str) -> None:
    """Answer a blueprint's pages under the public address's host alone: else 400.

    A page that is asked for under another name was reached through somebody else's (DNS
    rebinding, a forged link), and its cookie must not be used there. Programs are let through:
    a probe asks by address; so is what is the same for everybody (sheets, scripts), for the page
    that says no needs it. This machine's own names stand for one another.
    """
    scheme, expected = urlsplit(public_url).scheme, _host_of(public_url)

    @app.before_request
    def look() -> None:
        given = f"{scheme}://{current_request.headers.get('Host', '')}"
        is_static = current_request.endpoint == f"{blueprint}.static"
        is_page = current_request.blueprint == blueprint and not is_static
        if is_page and _host_of(given) != expected:
            raise WrongHost


def is_asked_from_here(request: Request) -> bool:
    """Whether a request that came over loopback is this machine's own.

    One that a proxy passed on is somebody else's, and so is that of a browser which was led here
    under a name that its owner had let point to loopback (DNS rebinding).
    """
    if any(name in request.headers for name in PASSED_ON):
        return False
    host = _host_of(f"http://{request.headers.get('Host', '')}")
    return host is not None and host[0] == _HERE


def _host_of(address: str) -> tuple[str, int] | None:
    """Host and port of an address; None where it has none that can be read."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    usual = {"https": 443, "http": 80}[parts.scheme]
    return _HERE if is_loopback(host) else host, port or usual


def session_token() -> str | None:
    """The token of a signed-in browser, as its cookie carries it."""
    token = session.get(_SIGNED_IN)
    return token if isinstance(token, str) else None


def keep_session_token(token: str) -> None:
    """Put a fresh token into the cookie, and nothing that was there before."""
    session.clear()
    session[_SIGNED_IN] = token


def browser_secret() -> str:
    """What only this browser's cookie holds: the session's token, before it a random visit."""
    secret = session_token() or session.get(_VISIT)
    if not isinstance(secret, str):
        secret = session[_VISIT] = secrets.token_urlsafe(24)
    return secret


def csrf_token() -> str:
    """What a form of this browser must bring along.

    It follows from the cookie's own secret, so it never goes stale while that one lives and
    survives a change of the signing key.
    """
    return hmac.new(browser_secret().encode(), b"form", hashlib.sha256).hexdigest()


def csrf_token_matches(offered: str) -> bool:
    """Whether a posted form was made for this browser's present session."""
    if session_token() is None and _VISIT not in session:
        return False
    return hmac.compare_digest(offered.encode(), csrf_token().encode())


def local_path(offered: str | None) -> str:
    """`offered` if it leads nowhere but to a path of ours, else the home page."""
    if offered is None or not _LOCAL_PATH.fullmatch(offered):
        return "/"
    parts = urlsplit(offered)
    return "/" if parts.scheme or parts.netloc else offered


def path_of(address: str) -> str | None:
    """Path and query of an address that a browser shows; None where it cannot be read."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def forget_session() -> None:
    """Empty the cookie."""
    session.clear()
