"""Standard Webhooks: signing what we send and verifying what we are sent.

Our own because a verifier must tell a stale timestamp under a good signature (a clock is
wrong) from a bad signature (a stranger, or a wrong key), and say which key matched. The
signature is looked at first: a stranger learns nothing about our clock.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
TOLERANCE_S: Final = 300

_SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix that every secret has
_MAX_ID = 256
_MAX_SIGNATURES = 32
_TIMESTAMP = re.compile(r"-?[0-9]{1,32}")
_SIGNATURE = re.compile(r"v1,[A-Za-z0-9+/]{43}=")


class SignatureError(Exception):
    """The request is not let in."""


class SignatureInvalid(SignatureError):
    """A header is missing or malformed, or no active secret made any of the signatures."""


class HeaderUnreadable(SignatureInvalid):
    """`header` is missing or garbled. Found before any secret is tried, so it tells of none."""

    def __init__(self, header: str) -> None:
        super().__init__(header)
        self.header = header


class TimestampOutOfRange(SignatureError):
    """Signed by one of us, but too old, or too far in the future."""


class HeaderSource(Protocol):
    """Headers by lower-case name; a plain dict, or a framework's own."""

    def get(self, name: str, /) -> str | None:
        """The value of one header, None where it is absent."""
        ...


def parse_secret(text: str) -> bytes:
    """The key in a `whsec_…` text. ValueError (without the text) where there is none."""
    encoded = text.strip().removeprefix(_SECRET_PREFIX).rstrip("=")
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        key = base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key or not text.strip().startswith(_SECRET_PREFIX):
        message = "a signing secret is whsec_ followed by base64"
        raise ValueError(message)
    return key


def key_id(secret: bytes) -> str:
    """A short public name for a secret, for logs and the audit; tells nothing about it."""
    return hashlib.sha256(b"key-id\x00" + secret).hexdigest()[:8]


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` of one message; `timestamp` in whole seconds of Unix time."""
    return _signature(secret, _signed_content(message_id, str(timestamp), body))


def signed_headers(secret: bytes, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers that go with `body`."""
    return {
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: sign(secret, message_id, timestamp, body),
    }


def verify(
    secrets: Sequence[bytes],
    headers: HeaderSource,
    raw_body: bytes,
    now: datetime,
    tolerance_s: float = TOLERANCE_S,
) -> str:
    """The `key_id` of the secret that signed `raw_body`, exactly the bytes received.

    Raises SignatureInvalid (HeaderUnreadable), or TimestampOutOfRange where the signature is good
    and the time is more than `tolerance_s` seconds away from `now` in either direction.
    """
    message_id = _header(headers, ID_HEADER)
    timestamp = _header(headers, TIMESTAMP_HEADER)
    if len(message_id) > _MAX_ID:
        raise HeaderUnreadable(ID_HEADER)
    if not _TIMESTAMP.fullmatch(timestamp):
        raise HeaderUnreadable(TIMESTAMP_HEADER)
    given = _header(headers, SIGNATURE_HEADER).split(" ")
    if not any(map(_SIGNATURE.fullmatch, given)):
        raise HeaderUnreadable(SIGNATURE_HEADER)
    matched = _matching(secrets, given, _signed_content(message_id, timestamp, raw_body))
    if matched is None:
        raise SignatureInvalid
    if abs(int(timestamp) - now.timestamp()) > tolerance_s:
        raise TimestampOutOfRange
    return key_id(matched)


def signed_digest(headers: HeaderSource, raw_body: bytes) -> bytes:
    """SHA-256 of what a verified signature covers: the same for a copy of the message alone."""
    message_id, timestamp = _header(headers, ID_HEADER), _header(headers, TIMESTAMP_HEADER)
    return hashlib.sha256(_signed_content(message_id, timestamp, raw_body)).digest()


def _header(headers: HeaderSource, name: str) -> str:
    value = headers.get(name)
    if value is None or not value.strip() or not value.isascii():
        raise HeaderUnreadable(name)
    return value


def _matching(secrets: Sequence[bytes], given: list[str], content: bytes) -> bytes | None:
    """Every pair is compared, in constant time, so that timing tells nothing."""
    if len(given) > _MAX_SIGNATURES:
        return None
    matched = None
    for secret in filter(None, secrets):
        expected = _signature(secret, content)
        for signature in given:
            if hmac.compare_digest(expected, signature):
                matched = secret
    return matched


def _signed_content(message_id: str, timestamp: str, body: bytes) -> bytes:
    return f"{message_id}.{timestamp}.".encode() + body


def _signature(secret: bytes, content: bytes) -> str:
    digest = hmac.digest(secret, content, "sha256")
    return "v1," + base64.b64encode(digest).decode()
