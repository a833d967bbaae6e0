"""Whether an identity token is the issuer's, for us, of now, and of this very sign-in.

OpenID Connect Core 1.0, sections 3.1.3.7 and 3.1.3.8. Only signatures that the issuer alone can
make are taken: never `none`, and never one that is made with the secret we share with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from notifier.accounts.oidc import Refusal, SignInRefused

LEEWAY_S: Final = 60
"""How far the issuer's clock and the database's may be apart."""

SIGNATURES: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519",
    "EdDSA",
)  # fmt: skip
USUAL_SIGNATURE: Final = "RS256"
_KEY_KINDS: Final = frozenset({"RSA", "EC", "OKP"})


class UnknownKey(Exception):
    """No key that we hold made this signature; the issuer may have taken a new one."""


def usable_signatures(offered: object) -> list[str]:
    """Those of an issuer's that are taken; what every issuer must have where it names none."""
    if not isinstance(offered, list):
        return [USUAL_SIGNATURE]
    return [each for each in SIGNATURES if each in offered]


def usable_keys(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The public keys for signatures out of an issuer's key set; a shared secret is none."""
    listed = document.get("keys")
    return [
        each
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, Mapping)
        and each.get("kty") in _KEY_KINDS
        and each.get("use", "sig") == "sig"
    ]


def claims_of(
    token: Mapping[str, Any],
    *,
    keys: Iterable[Mapping[str, Any]],
    signatures: Iterable[str],
    expected: Mapping[str, str],
    now: datetime,
) -> Mapping[str, Any]:
    """The claims of the identity token in a token answer.

    `expected` holds `issuer`, `client_id` and `nonce`. Raises `UnknownKey`, and `SignInRefused`
    for everything that must not be taken.
    """
    signed = _opened(token.get("id_token"), list(keys), list(signatures))
    _check(signed.claims, signed.header, token.get("access_token"), expected, now)
    claims: Mapping[str, Any] = signed.claims
    return claims


def _opened(text: object, keys: list[Mapping[str, Any]], signatures: list[str]) -> Any:
    from joserfc import errors, jwt  # noqa: PLC0415 - only who signs in this way needs it
    from joserfc.jwk import KeySet  # noqa: PLC0415

    if not isinstance(text, str):
        raise SignInRefused(Refusal.TOKEN, "missing")
    if not keys:
        raise UnknownKey
    try:
        return jwt.decode(text, KeySet.import_key_set({"keys": keys}), algorithms=signatures)  # type: ignore[typeddict-item]
    except (errors.BadSignatureError, errors.InvalidKeyIdError):
        raise UnknownKey from None
    except (errors.JoseError, ValueError, KeyError, TypeError):
        raise SignInRefused(Refusal.TOKEN, "unreadable") from None


def _check(
    claims: Mapping[str, Any],
    header: Mapping[str, Any],
    access_token: object,
    expected: Mapping[str, str],
    now: datetime,
) -> None:
    from authlib.oidc.core import CodeIDToken  # noqa: PLC0415
    from joserfc import errors  # noqa: PLC0415

    options = {
        "iss": {"essential": True, "value": expected["issuer"]},
        "aud": {"essential": True, "value": expected["client_id"]},
    }
    params = {key: expected[key] for key in ("nonce", "client_id")}
    if isinstance(access_token, str):
        params["access_token"] = access_token
    try:
        CodeIDToken(claims, header, options, params).validate(int(now.timestamp()), LEEWAY_S)
    except errors.JoseError as error:
        raise SignInRefused(Refusal.TOKEN, getattr(error, "claim", None) or error.error) from None
    except (TypeError, ValueError, AttributeError):
        raise SignInRefused(Refusal.TOKEN, "malformed") from None
