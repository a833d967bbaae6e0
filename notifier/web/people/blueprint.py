"""All pages for people as one blueprint, with its gate, its headers and its errors."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flask import Blueprint, Response, request, url_for

from notifier.accounts.permissions import Permission
from notifier.clock import ClockUnknown
from notifier.web import security
from notifier.web.documents import FORM_LIMIT
from notifier.web.people import (
    errors,
    phrases,
    preferences,
    sheets,
    times,
    versions,
    visit,
)
from notifier.web.people.acts import add_acts
from notifier.web.people.alerts import add_alerts
from notifier.web.people.alerts_acts import add_alert_acts
from notifier.web.people.audit import add_audit
from notifier.web.people.exports import add_exports
from notifier.web.people.failures import add_failures
from notifier.web.people.halts import add_halts
from notifier.web.people.incident import add_incident
from notifier.web.people.lists import add_lists
from notifier.web.people.notice import add_notice
from notifier.web.people.oidc import add_oidc
from notifier.web.people.overview import add_overview
from notifier.web.people.policy import add_policy
from notifier.web.people.preferences import add_preferences
from notifier.web.people.runbooks import add_runbooks
from notifier.web.people.search import KEY_WORDS, add_search
from notifier.web.people.sender_domains import add_sender_domains
from notifier.web.people.sign_in import add_sign_in
from notifier.web.requests import IdConverter, request_id

if TYPE_CHECKING:
    from datetime import datetime

    from flask.blueprints import BlueprintSetupState

    from notifier.web.people.services import PeopleServices

ROOT: Final = Path(__file__).resolve().parents[3]
STATIC: Final = ROOT / "static"
HTMX: Final = "vendor/htmx-4.0.1.min.js"
HTMX_INTEGRITY: Final = "sha384-Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn"
"""Of the published file; a test compares it with the installed one."""

_INDENTS: Final = re.compile(r"\n\s+|\n(?=<t[dr])|  +")
"""Room that templates need and browsers do not; no page holds preformatted text."""

_ENDS: Final = re.compile(r"</(?:td|th|tr|li|dt|dd)>")
"""End tags that HTML lets a writer omit where these elements stand (HTML, 13.1.2.4)."""

FOR_EVER: Final = "public, max-age=31536000, immutable"

_PAGES: Final = (
    add_sign_in,
    add_oidc,
    add_overview,
    add_search,
    add_lists,
    add_failures,
    add_notice,
    add_incident,
    add_halts,
    add_acts,
    add_audit,
    add_exports,
    add_policy,
    add_alerts,
    add_alert_acts,
    add_preferences,
    add_runbooks,
    add_sender_domains,
)


def people_blueprint(services: PeopleServices) -> Blueprint:
    """Every page, ready to be registered at the root. One call per app."""
    blueprint = Blueprint(
        "people",
        __name__,
        template_folder=str(ROOT / "templates"),
        static_folder=str(STATIC),
        static_url_path="/static",
    )

    def prepare(state: BlueprintSetupState) -> None:
        state.app.extensions[visit.EXTENSION] = services
        state.app.config["MAX_CONTENT_LENGTH"] = FORM_LIMIT
        state.app.url_map.converters.setdefault("id", IdConverter)
        state.app.jinja_env.trim_blocks = True
        state.app.jinja_env.lstrip_blocks = True
        state.app.jinja_env.filters |= _FILTERS

    blueprint.record(prepare)
    blueprint.before_request(visit.gate)
    blueprint.after_request(_protect)
    blueprint.app_context_processor(_context)
    blueprint.register_error_handler(Exception, errors.answer_error)
    for add in _PAGES:
        add(blueprint)
    return blueprint


_FILTERS: Final[dict[str, Any]] = {
    "iso": times.iso,
    "clock": preferences.clock,
    "span": times.span,
    "long_span": times.long_span,
    "rough": times.rough,
    "ago": times.ago,
    "left_words": times.left_words,
    "badge": phrases.badge,
}


def _context() -> dict[str, Any]:
    return {
        "visitor": visit.known_visitor(),
        "engaged": visit.halts(),
        "csrf_token": security.csrf_token,
        "request_id": request_id,
        "asset": asset,
        "htmx": HTMX,
        "htmx_integrity": HTMX_INTEGRITY,
        "preferences": preferences.preferences(),
        "zone_words": preferences.zone_words,
        "services": visit.services(),
        "made_at": made_at,
        "Permission": Permission,
        "key_words": KEY_WORDS,
        "phrases": phrases,
        "share": times.share,
    }


def made_at() -> datetime | None:
    """When this page is made; None while that is not known, for no page may fail by its foot."""
    try:
        return visit.services().now()
    except ClockUnknown:
        return None


def asset(name: str) -> str:
    """The address of a file of ours, with its content's digest, so that it may be kept."""
    return url_for("people.static", filename=name, v=_digest(name))


def _is_named_by_digest() -> bool:
    """Whether a file is asked for by its content: under any other word it may change."""
    name = (request.view_args or {})["filename"]
    return request.args.get("v") == _digest(name)


@lru_cache(maxsize=256)
def _digest(name: str) -> str | None:
    path = STATIC / name
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else None


def _narrow(room: re.Match[str]) -> str:
    if "\n" not in room[0]:
        return " "
    return "" if room.string.startswith(("<td", "<tr"), room.end()) else "\n"


def _protect(response: Response) -> Response:
    secure = visit.services().secure
    if request.endpoint == "people.static" and response.status_code == 200:
        response.headers["Cache-Control"] = FOR_EVER if _is_named_by_digest() else "no-cache"
        if response.mimetype == "text/css":
            response.direct_passthrough = False
            response.set_data(sheets.narrow(response.get_data(as_text=True)))
        return security.add_headers(response, secure=secure)
    if response.mimetype == "text/html":
        text = _ENDS.sub("", response.get_data(as_text=True))
        response.set_data(_INDENTS.sub(_narrow, text))
        response = versions.spare(request, response)
    return security.add_page_headers(response, secure=secure)
