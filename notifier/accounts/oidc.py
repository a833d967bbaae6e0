"""Signing in at somebody else's door: which of the issuer's people we let in, and as what.

A person is what the issuer calls them (`iss` and `sub` together, never a name or an address).
The role comes from one claim. Its values are compared whole and with their case; those that
stand for nothing here are passed over. Without an order of the operator's own each role stands
for itself and exactly one may be there: of two, none is the stronger, for an auditor may see
what an administrator may not. With one (`NOTIFIER_OIDC_ROLES`) its first value that the person
has decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from notifier.accounts.permissions import Role
from notifier.domain.values import Unserialised

if TYPE_CHECKING:
    from notifier.settings import Settings

LONGEST_SUBJECT: Final = 255
"""Characters of a subject (OpenID Connect Core 1.0, section 2: ASCII, at most 255)."""

MOST_VALUES: Final = 1_000
"""Values of a role claim that are looked at; an issuer that sends more is not believed."""


class Refusal(StrEnum):
    """Why a sign-in at the issuer let nobody in."""

    NOT_BEGUN = "not_begun"
    """No sign-in of this browser waits for this answer: forged, used before, or too old."""
    DENIED = "denied"
    """The issuer, or the person there, said no."""
    OTHER_ISSUER = "other_issuer"
    CODE = "code"
    """The issuer gave nothing for the code."""
    TOKEN = "token"  # noqa: S105 - a word
    """The identity token does not hold."""
    NO_ROLE = "no_role"
    SEVERAL_ROLES = "several_roles"
    SHUT = "shut"
    """The account here was shut."""


class SignInRefused(Exception):
    """Nobody is let in. `detail` is a short word for the log, never out of a token."""

    def __init__(self, refusal: Refusal, detail: str = "") -> None:
        super().__init__(refusal)
        self.refusal = refusal
        self.detail = detail


class IssuerUnreachable(Exception):
    """The issuer gave no usable answer in time; `what` is a short code."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True, slots=True)
class Client(Unserialised):
    """Ourselves, as the issuer knows us. `roles`: claim value to role, in the order that decides.

    `ordered` says that the operator wrote that order. `redirect_uri` is where the issuer sends
    people back to, `left_uri` where after they have signed out there.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    role_claim: str
    redirect_uri: str
    left_uri: str
    roles: Mapping[str, Role]
    ordered: bool


def client_of(settings: Settings) -> Client | None:
    """Ourselves as the settings say; None where there is no issuer."""
    secret, base = settings.oidc_client_secret, settings.public_base
    if settings.oidc_issuer is None or secret is None:
        return None
    order = {value: Role(role) for value, role in settings.oidc_roles}
    return Client(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id or "",
        client_secret=secret.get_secret_value(),
        role_claim=settings.oidc_role_claim or "",
        redirect_uri=f"{base}/login/sso/return",
        left_uri=f"{base}/login",
        roles=order or {role.value: role for role in Role},
        ordered=bool(order),
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """Who came from the issuer. `name` is what they are called there, None where nothing is."""

    issuer: str
    subject: str
    name: str | None
    role: Role

    @property
    def mark(self) -> str:
        """A short digest that stands for the identity where a name does not do."""
        return hashlib.sha256(f"{self.issuer} {self.subject}".encode()).hexdigest()[:12]


def identity_of(client: Client, claims: Mapping[str, Any]) -> Identity:
    """Who the checked claims speak of. Raises `SignInRefused`."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or "\0" in subject:
        raise SignInRefused(Refusal.TOKEN, "sub")
    name = claims.get("preferred_username")
    called = name if isinstance(name, str) else None
    return Identity(client.issuer, subject, called, role_of(client, claims))


def role_of(client: Client, claims: Mapping[str, Any]) -> Role:
    """The role that the claim gives. Raises `SignInRefused` for none and for several."""
    held = set(_values(_claim(claims, client.role_claim)))
    found = [role for value, role in client.roles.items() if value in held]
    if not found:
        raise SignInRefused(Refusal.NO_ROLE)
    if len(set(found)) > 1 and not client.ordered:
        raise SignInRefused(Refusal.SEVERAL_ROLES)
    return found[0]


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """The claim of this name, or what its dotted path leads to (`realm_access.roles`)."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for step in name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _values(claim: Any) -> list[str]:
    """A word or a list of words; anything else says nothing."""
    listed = claim if isinstance(claim, list) else [claim]
    if len(listed) > MOST_VALUES:
        return []
    return [each for each in listed if isinstance(each, str)]
