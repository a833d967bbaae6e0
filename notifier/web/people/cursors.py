"""A place in a list as an opaque, signed text that fits one filter only."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from flask import current_app
from itsdangerous import BadData, URLSafeSerializer

from notifier.store.reads.paging import Cursor
from notifier.web.people.errors import Unfit

_SALT: Final = "cursor"
_PARTS: Final = 5


def _serializer() -> URLSafeSerializer:
    newest = str(current_app.secret_key)
    older = [str(key) for key in current_app.config.get("SECRET_KEY_FALLBACKS") or []]
    return URLSafeSerializer([*reversed(older), newest], salt=_SALT)


def write_cursor(cursor: Cursor | None, filtered: str) -> str | None:
    """The text of a cursor into the list that `filtered` describes."""
    if cursor is None:
        return None
    upto = cursor.upto.isoformat() if cursor.upto else None
    parts = [cursor.at.isoformat(), cursor.row_id, cursor.forward, filtered, upto]
    return str(_serializer().dumps(parts))


def read_cursor(text: str | None, filtered: str) -> Cursor | None:
    """The cursor; None (the first page) when it belongs to another filter. Raises `Unfit`."""
    if not text:
        return None
    try:
        parts = _serializer().loads(text)
    except (BadData, ValueError):
        raise Unfit("cursor", "was changed or cut off") from None
    if not isinstance(parts, list) or len(parts) != _PARTS or parts[3] != filtered:
        return None
    upto = datetime.fromisoformat(parts[4]) if parts[4] else None
    at = datetime.fromisoformat(parts[0])
    return Cursor(at, str(parts[1]), forward=bool(parts[2]), upto=upto)
