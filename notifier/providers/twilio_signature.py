"""Whether a callback was signed with the account's auth token, and which fields that covers.

The rule is Twilio's (request security): HMAC-SHA1 over the full address that was called,
followed by every name and value of the form, sorted, without separators; a name that repeats
gives its distinct values in order. A body that is no form is covered by its SHA-256 in the
address's query instead. There is no timestamp, so a replay cannot be told from the first.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, parse_qs, parse_qsl, urlsplit

from notifier.domain.values import Secret
from notifier.json_objects import document_of
from notifier.ports.asking import Callback

SIGNATURE_HEADER: Final = "x-twilio-signature"
BODY_DIGEST: Final = "bodySHA256"
MOST_FIELDS: Final = 500

_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_FORM: Final = "application/x-www-form-urlencoded"

Values = Mapping[str, set[str]]


def genuine_fields(callback: Callback, *auth_tokens: Secret) -> dict[str, str] | None:
    """The signed fields that have one value each; None where no token made the signature."""
    headers = {name.lower(): value for name, value in callback.headers.items()}
    signature = headers.get(SIGNATURE_HEADER, "")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    covered = _form(callback.body) if kind == _FORM else {}
    if covered is None or (kind != _FORM and not _is_covered(callback)):
        return None
    signed = [_is_signed(callback.url, covered, signature, each) for each in auth_tokens]
    if not any(signed):
        return None
    return _single(covered) if kind == _FORM else _members(callback.body)


def _form(body: bytes) -> Values | None:
    """Every name with its distinct values; bytes that are no UTF-8 are kept as they are."""
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "surrogateescape"),
            keep_blank_values=True,
            errors="surrogateescape",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        return None
    values: dict[str, set[str]] = defaultdict(set)
    for name, value in pairs:
        values[name].add(value)
    return values


def _is_covered(callback: Callback) -> bool:
    """Whether the address carries the digest of this very body."""
    given = parse_qs(urlsplit(callback.url).query).get(BODY_DIGEST, [""])[0]
    digest = hashlib.sha256(callback.body).hexdigest()
    return given.isascii() and hmac.compare_digest(given.lower(), digest)


def _is_signed(url: str, values: Values, signature: str, auth_token: Secret) -> bool:
    fields = "".join(name + value for name in sorted(values) for value in sorted(values[name]))
    if not signature.isascii():
        return False
    key = auth_token.reveal().encode()
    matches = [
        hmac.compare_digest(signature, _sign(key, address + fields)) for address in _addresses(url)
    ]
    return any(matches)


def _sign(key: bytes, text: str) -> str:
    made = hmac.new(key, text.encode("utf-8", "surrogateescape"), hashlib.sha1)
    return base64.b64encode(made.digest()).decode()


def _addresses(url: str) -> set[str]:
    """The address as it is, without its port, and with the default one.

    Twilio has signed all three; the SDK's own check accepts them too.
    """
    parts = urlsplit(url)
    bare = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.netloc
    host = bare if bare.startswith("[") else bare.partition(":")[0]
    usual = f"{host}:{_DEFAULT_PORTS.get(parts.scheme, 443)}"
    with_port = url if parts.port else _at(parts, usual)
    return {url, with_port, _at(parts, host)}


def _at(parts: SplitResult, netloc: str) -> str:
    return parts._replace(netloc=netloc).geturl()


def _single(values: Values) -> dict[str, str]:
    """A name with two values could be read either way, so it is read as neither."""
    return {name: next(iter(each)) for name, each in values.items() if len(each) == 1}


def _members(body: bytes) -> dict[str, str]:
    document = document_of(body) or {}
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in document.items()
        if isinstance(value, str | int)
    }
