"""How settings are read from text: secrets, keys, tokens, names and numbers.

Every reader raises `Unusable` with a sentence about what is wrong that never repeats the
text: it may be a secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Final

from notifier.domain.destinations import check_email
from notifier.setting_values import ROLE_NAMES, SCOPES, ApiToken, KeyRing, SigningSecret, Unusable

_LEAST_KEY_CHARS: Final = 32
_LEAST_SECRET_BYTES: Final = 16
_SEED_BYTES: Final = 32


def entries(text: str) -> list[str]:
    """The comma-separated entries; a blank one is refused."""
    found = [each.strip() for each in text.split(",")]
    if not all(found):
        message = "an entry between commas is blank"
        raise Unusable(message)
    return found


def read_signing_secret(text: str) -> SigningSecret:
    """`whsec_` and base64; at least 16 bytes."""
    text = text.strip()
    if not text.startswith("whsec_"):
        message = "a secret does not start with whsec_"
        raise Unusable(message)
    key = _base64(text.removeprefix("whsec_"))
    if len(key) < _LEAST_SECRET_BYTES:
        message = f"a secret is shorter than {_LEAST_SECRET_BYTES} bytes"
        raise Unusable(message)
    return SigningSecret(hashlib.sha256(key).hexdigest()[:8], key)


def read_signing_secrets(text: str) -> tuple[SigningSecret, ...]:
    """Several of them, each once."""
    found = tuple(read_signing_secret(each) for each in entries(text))
    _no_repeats([each.key_id for each in found], "a secret stands there twice")
    return found


def read_key_ring(text: str) -> KeyRing:
    """The key in use, then old ones; each at least 32 characters."""
    keys = entries(text)
    if any(len(each) < _LEAST_KEY_CHARS for each in keys):
        message = f"a key is shorter than {_LEAST_KEY_CHARS} characters"
        raise Unusable(message)
    current, *old = (each.encode() for each in keys)
    return KeyRing(current, tuple(old))


def read_seed_ring(text: str) -> KeyRing:
    """Ed25519 seeds: 32 bytes each, as 64 hex digits or base64."""
    current, *old = (_seed(each) for each in entries(text))
    return KeyRing(current, tuple(old))


def read_api_tokens(text: str) -> tuple[ApiToken, ...]:
    """`name:scope+scope:sha256-hex` entries."""
    found = tuple(_api_token(each) for each in entries(text))
    _no_repeats([each.name for each in found], "a name stands there twice")
    return found


def read_names(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """A reader of ordered names out of `known`, each at most once."""

    def read(text: str) -> tuple[str, ...]:
        found = tuple(entries(text))
        if not set(found) <= set(known):
            message = "a name is not known"
            raise Unusable(message)
        _no_repeats(list(found), "a name stands there twice")
        return found

    return read


def read_role_order(text: str) -> tuple[tuple[str, str], ...]:
    """`value=role` entries in their order; a value stands there once."""
    found = []
    for value, _, role in (each.rpartition("=") for each in entries(text)):
        if not value.strip() or role.strip() not in ROLE_NAMES:
            message = "an entry is not of the form value=role"
            raise Unusable(message)
        found.append((value.strip(), role.strip()))
    _no_repeats([value for value, _ in found], "a value stands there twice")
    return tuple(found)


def read_selectors(text: str) -> tuple[str, ...]:
    """DKIM selectors: labels of letters, digits, hyphens and underscores, joined by dots."""
    found = tuple(entries(text))
    if not all(re.fullmatch(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]{0,62}", each) for each in found):
        message = "an entry is no DKIM selector"
        raise Unusable(message)
    _no_repeats([each.lower() for each in found], "a selector stands there twice")
    return found


def read_bare_address(text: str) -> str:
    """An email address alone, without a name."""
    found = check_email(text.strip())
    if found is None:
        message = "not a bare email address"
        raise Unusable(message)
    return found.reveal()


def read_twilio_account(text: str) -> str:
    """An account's SID: `AC` and 32 hex digits."""
    if not re.fullmatch(r"AC[0-9A-Fa-f]{32}", text.strip()):
        message = "not AC and 32 hex digits"
        raise Unusable(message)
    return text.strip()


def read_twilio_sender(text: str) -> str:
    """A number (E.164, or a short code) or a messaging service's SID (`MG` and 32 hex digits).

    A sender's name is one of a messaging service's: alone it could not be told from a slip.
    """
    if not re.fullmatch(r"\+[1-9][0-9]{6,14}|[0-9]{3,8}|MG[0-9A-Fa-f]{32}", text.strip()):
        message = "neither + and a number's digits, nor a short code, nor MG and 32 hex digits"
        raise Unusable(message)
    return text.strip()


def read_flag(text: str) -> bool:
    """`1` or `0`."""
    if text.strip() not in {"0", "1"}:
        message = "neither 0 nor 1"
        raise Unusable(message)
    return text.strip() == "1"


def read_rate(text: str) -> float | None:
    """A number above nought, or `off`."""
    if text.strip().lower() == "off":
        return None
    if not re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,3})?", text.strip()) or float(text) <= 0:
        message = "neither a number above nought nor off"
        raise Unusable(message)
    return float(text)


def _api_token(text: str) -> ApiToken:
    name, _, rest = text.partition(":")
    scopes, _, digest = rest.partition(":")
    wanted = frozenset(scopes.split("+"))
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        message = "a name is missing or has characters other than letters, digits and . _ -"
        raise Unusable(message)
    if not wanted <= SCOPES:
        message = f"a scope is none of {', '.join(sorted(SCOPES))}"
        raise Unusable(message)
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", digest):
        message = "a hash is not 64 hex digits"
        raise Unusable(message)
    return ApiToken(name, wanted, bytes.fromhex(digest))


def _seed(text: str) -> bytes:
    seed = bytes.fromhex(text) if re.fullmatch(r"[0-9A-Fa-f]{64}", text) else _base64(text)
    if len(seed) != _SEED_BYTES:
        message = f"a seed is not {_SEED_BYTES} bytes long"
        raise Unusable(message)
    return seed


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        message = "not base64"
        raise Unusable(message) from None


def _no_repeats(names: list[str], message: str) -> None:
    if len(set(names)) != len(names):
        raise Unusable(message)
