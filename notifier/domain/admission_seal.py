"""One digest over what an admission is known again by, for its first row on the trail.

The keys themselves stand beside the trail. Under its hash is what shows that one was changed:
nobody learns an account or a key from the digest, because the keyed digest of the content is in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

SEALED: Final = (
    "event_id", "idempotency_key", "reset_request_id", "account_id", "requested_at", "supersedes",
    "content_digest",
)  # fmt: skip
"""The columns of an admission that are under its seal, in their order."""


def admission_seal(admission: Mapping[str, Any]) -> str:
    """SHA-256 (hex) over the `SEALED` columns: each by its length in bytes, a colon, its text."""
    digest = hashlib.sha256()
    for name in SEALED:
        text = _text(admission[name]).encode()
        digest.update(b"%d:%b," % (len(text), text))
    return digest.hexdigest()


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    return str(value)
