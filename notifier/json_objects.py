"""The JSON that others answer with: one object, each of its members once."""

from __future__ import annotations

import json
from typing import Any

Document = dict[str, Any]


def document_of(body: bytes) -> Document | None:
    """The JSON object in `body`; None for everything else, a repeated member included."""
    try:
        found = json.loads(body.decode("utf-8"), object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _once_each(pairs: list[tuple[str, Any]]) -> Document:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError
    return document
