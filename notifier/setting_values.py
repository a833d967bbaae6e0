"""What settings are once they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pydantic import SecretStr

from notifier.domain.values import Unserialised

SCOPES: Final = frozenset({"status", "tickets", "metrics"})

ROLE_NAMES: Final = ("support", "on-call", "auditor", "admin")
"""The roles of people; a test compares them with those of the accounts."""


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
