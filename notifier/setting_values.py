"""The parsed forms of settings, and how each is read from text.

Every reader raises `Unusable` with a sentence about what is wrong that never repeats the
text: it may be a secret, and a URL may hold a password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from pydantic import SecretStr

from notifier.domain.destinations import check_email
from notifier.domain.values import Unserialised

SCOPES: Final = frozenset({"status", "tickets", "metrics"})

ROLE_NAMES: Final = ("support", "on-call", "auditor", "admin")
"""The roles of people; a test compares them with those of the accounts."""

_LEAST_KEY_CHARS: Final = 32
_LEAST_SECRET_BYTES: Final = 16
_SEED_BYTES: Final = 32
_SMTP_PORTS: Final = {"smtp": 587, "smtps": 465}


class Unusable(ValueError):
    """What is wrong with a setting's text, without the text."""


@dataclass(frozen=True, slots=True)
class SigningSecret(Unserialised):
    """A Standard Webhooks secret. `key_id` names it on the trail (short hash, not the secret)."""

    key_id: str
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyRing(Unserialised):
    """A key in use and those it replaced, which still verify."""

    current: bytes = field(repr=False)
    old: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def all(self) -> tuple[bytes, ...]:
        """Every key that verifies, the one in use first."""
        return (self.current, *self.old)


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A machine's bearer token: who, what it may do, and the SHA-256 of the token."""

    name: str
    scopes: frozenset[str]
    sha256: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SmtpServer(Unserialised):
    """Where mail is handed over. `implicit_tls` is smtps; `starttls` upgrades a plain line."""

    host: str
    port: int
    implicit_tls: bool
    starttls: bool
    user: str | None = field(default=None, repr=False)
    password: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Bind:
    """The address that the application listens on."""

    host: str
    port: int


def entries(text: str) -> list[str]:
    """The comma-separated entries; a blank one is refused."""
    found = [each.strip() for each in text.split(",")]
    if not all(found):
        message = "an entry between commas is blank"
        raise Unusable(message)
    return found


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine by itself, without asking DNS."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def read_bind(text: str) -> Bind:
    """`host:port`; an IPv6 address in brackets."""
    url = _split(f"//{text.strip()}")
    if not url.hostname or url.path or url.query or url.username is not None:
        message = "not of the form host:port"
        raise Unusable(message)
    port = _port(url)
    if port is None:
        message = "the port is missing"
        raise Unusable(message)
    return Bind(url.hostname, port)


def read_base_url(text: str) -> str:
    """An http or https address without user, query or fragment; slashes at the end dropped."""
    _http_url(text)
    return text.strip().rstrip("/")


def read_guarded_url(text: str) -> str:
    """An http or https address as it stands; plain http only on loopback."""
    url = _http_url(text)
    if url.scheme != "https" and not is_loopback(url.hostname or ""):
        message = "plain http is for loopback only"
        raise Unusable(message)
    return text.strip()


def read_guarded_endpoint(text: str) -> str:
    """As `read_guarded_url`; a query may stand in it."""
    read_guarded_url(text.partition("?")[0])
    return text.strip()


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


def read_secret_url(text: str) -> SecretStr:
    """As `read_guarded_url`, of an address that gives something to whoever knows it."""
    return SecretStr(read_guarded_url(text))


def read_guarded_base_url(text: str) -> str:
    """As `read_guarded_url`, slashes at the end dropped."""
    return read_guarded_url(text).rstrip("/")


def read_database_url(text: str) -> SecretStr:
    """A `postgresql://` address, several hosts allowed (libpq reads the rest)."""
    if not re.match(r"postgres(ql)?://\S+\Z", text.strip()):
        message = "not a postgresql:// address"
        raise Unusable(message)
    return SecretStr(text.strip())


def read_smtp(text: str) -> SmtpServer:
    """`smtp://user:pass@host:587?starttls=1` or `smtps://…`; unencrypted only on loopback."""
    url = _split(text.strip())
    if url.scheme not in _SMTP_PORTS or not url.hostname or url.path.strip("/") or url.fragment:
        message = "not an smtp:// or smtps:// address"
        raise Unusable(message)
    implicit, starttls = url.scheme == "smtps", _starttls(url.query)
    if implicit and starttls:
        message = "starttls is for smtp://, smtps:// is encrypted from the start"
        raise Unusable(message)
    if not (implicit or starttls or is_loopback(url.hostname)):
        message = "an unencrypted line is for loopback only"
        raise Unusable(message)
    return SmtpServer(
        host=url.hostname,
        port=_port(url) or _SMTP_PORTS[url.scheme],
        implicit_tls=implicit,
        starttls=starttls,
        user=unquote(url.username) if url.username else None,
        password=SecretStr(unquote(url.password)) if url.password else None,
    )


def read_resolver(text: str) -> Bind:
    """`address` or `address:port` of a DNS resolver, in numbers; port 53 where none is given."""
    try:
        return Bind(str(ipaddress.ip_address(text.strip())), 53)
    except ValueError:
        pass
    url = _split(f"//{text.strip()}")
    try:
        host = str(ipaddress.ip_address(url.hostname or ""))
    except ValueError:
        message = "not an address in numbers"
        raise Unusable(message) from None
    if url.path or url.query or url.username is not None:
        message = "not of the form address:port"
        raise Unusable(message)
    return Bind(host, _port(url) or 53)


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


def _http_url(text: str) -> SplitResult:
    url = _split(text.strip())
    if url.scheme not in {"http", "https"} or not url.hostname:
        message = "not an http or https address"
        raise Unusable(message)
    if url.username is not None or url.query or url.fragment:
        message = "no user, query or fragment may stand in it"
        raise Unusable(message)
    _port(url)
    return url


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


def _split(text: str) -> SplitResult:
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        message = "spaces and control characters may not stand in it"
        raise Unusable(message)
    try:
        return urlsplit(text)
    except ValueError:
        message = "not an address"
        raise Unusable(message) from None


def _port(url: SplitResult) -> int | None:
    try:
        return url.port
    except ValueError:
        message = "the port is not a number up to 65535"
        raise Unusable(message) from None


def _starttls(query: str) -> bool:
    if not query:
        return False
    given = parse_qs(query, keep_blank_values=True)
    if set(given) != {"starttls"} or given["starttls"] not in (["0"], ["1"]):
        message = "only starttls=0 or starttls=1 may follow the question mark"
        raise Unusable(message)
    return given["starttls"] == ["1"]
