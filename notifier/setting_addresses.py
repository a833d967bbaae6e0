"""How the addresses among the settings are read from text: where others are, and where we are.

Every reader raises `Unusable` with a sentence about what is wrong that never repeats the
text: a URL may hold a password.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from pydantic import SecretStr

from notifier.loopback import is_loopback
from notifier.setting_values import Bind, SmtpServer, Unusable

_SMTP_PORTS: Final = {"smtp": 587, "smtps": 465}


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
