"""Asks the issuer: what it offers, its keys, and a token for a code. Nothing before it is needed.

Every question has one limit for the whole of it, and after one that failed none is asked for
some seconds: an issuer that hangs takes no request threads away from the local pages. What the
issuer offers and its keys are kept for an hour; a signature of none of them asks once more.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode

import httpcore2

from notifier.accounts import oidc_tokens
from notifier.accounts.oidc import Client, IssuerUnreachable, Refusal, SignInRefused
from notifier.accounts.oidc_starts import Start
from notifier.clock import steady
from notifier.setting_addresses import read_guarded_endpoint
from notifier.setting_values import Unusable
from notifier.timed_http import HttpAnswer, HttpTroubleError, TimedHttp

LIMIT_S: Final = 5.0
"""Seconds for one question, all of it."""
WAIT_S: Final = 1.0
"""Seconds that a request waits for another one that is asking."""
QUIET_S: Final = 5.0
"""Seconds without a question after one that failed."""
KEPT_S: Final = 3600.0
LARGEST: Final = 512 * 1024
WELL_KNOWN: Final = "/.well-known/openid-configuration"
SCOPES: Final = ("openid", "profile")
ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
LEAVING: Final = "end_session_endpoint"
_PLAIN: Final = {"Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class Offer:
    """What the issuer says of itself, checked, and when it said so (steady seconds)."""

    document: Mapping[str, Any]
    keys: tuple[Mapping[str, Any], ...]
    seen_at: float

    def __getitem__(self, name: str) -> Any:
        """One entry of its document."""
        return self.document[name]


class Issuer:
    """The issuer of one client; shared by threads."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._offer: Offer | None = None
        self._quiet_until = 0.0
        self._lock = threading.Lock()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The authorities that are trusted: read when first needed, for that takes a while."""
        return ssl.create_default_context()

    def offer(self, *, fresh: bool = False) -> Offer:
        """What it offers now; `fresh` asks again. Raises `IssuerUnreachable`."""
        if not self._lock.acquire(timeout=WAIT_S):
            raise IssuerUnreachable("asked_already")
        try:
            kept = self._offer
            if kept is not None and not fresh and steady() - kept.seen_at < KEPT_S:
                return kept
            if steady() < self._quiet_until:
                raise IssuerUnreachable("silent_before")
            try:
                self._offer = self._ask_offer()
            except IssuerUnreachable:
                self._quiet_until = steady() + QUIET_S
                raise
            return self._offer
        finally:
            self._lock.release()

    def way_in(self, start: Start) -> str:
        """The address at the issuer that a person is sent to. Raises `IssuerUnreachable`."""
        offer = self.offer()
        url: str = self._protocol(offer).create_authorization_url(
            offer["authorization_endpoint"],
            state=start.state,
            code_verifier=start.verifier,
            nonce=start.nonce,
        )[0]
        return url

    def way_out(self) -> str | None:
        """The address at the issuer that ends the sign-in there; None where it has none."""
        where = self.offer().document.get(LEAVING)
        if where is None:
            return None
        told = {"client_id": self.client.client_id,
                "post_logout_redirect_uri": self.client.left_uri}  # fmt: skip
        return f"{where}{'&' if '?' in where else '?'}{urlencode(told)}"

    def check_sender(self, said: str | None) -> None:
        """Whether an answer that names its issuer (RFC 9207) is this one's.

        Raises `SignInRefused`, also where this issuer always names itself and this one did not.
        """
        names_itself = self.offer().document.get("authorization_response_iss_parameter_supported")
        if said != self.client.issuer and (said is not None or names_itself is True):
            raise SignInRefused(Refusal.OTHER_ISSUER)

    def claims(self, code: str, start: Start, now: datetime) -> Mapping[str, Any]:
        """Exchange a code for checked claims. Raises `IssuerUnreachable`, `SignInRefused`."""
        token = self._exchange(code, start)
        try:
            return self._checked(token, self.offer(), start, now)
        except oidc_tokens.UnknownKey:
            renewed = self.offer(fresh=True)
        try:
            return self._checked(token, renewed, start, now)
        except oidc_tokens.UnknownKey:
            raise SignInRefused(Refusal.TOKEN, "signature") from None

    def _checked(
        self, token: Mapping[str, Any], offer: Offer, start: Start, now: datetime
    ) -> Mapping[str, Any]:
        named = offer.document.get("id_token_signing_alg_values_supported")
        return oidc_tokens.claims_of(
            token,
            keys=offer.keys,
            signatures=oidc_tokens.usable_signatures(named),
            expected={"issuer": self.client.issuer, "client_id": self.client.client_id,
                      "nonce": start.nonce},
            now=now,
        )  # fmt: skip

    def _exchange(self, code: str, start: Start) -> Mapping[str, Any]:
        from authlib.oauth2 import OAuth2Error  # noqa: PLC0415 - only who signs in this way needs it

        offer = self.offer()
        try:
            token: Mapping[str, Any] = self._protocol(offer).fetch_token(
                offer["token_endpoint"],
                grant_type="authorization_code",
                code=code,
                code_verifier=start.verifier,
                redirect_uri=self.client.redirect_uri,
            )
        except (OAuth2Error, ValueError):
            raise SignInRefused(Refusal.CODE) from None
        return token

    def _protocol(self, offer: Offer) -> Any:
        from authlib.oauth2.client import OAuth2Client  # noqa: PLC0415

        named = offer.document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        basic = "client_secret_basic" in named or "client_secret_post" not in named
        claim = self.client.role_claim.partition(".")[0]
        offered = offer.document.get("scopes_supported") or ()
        return OAuth2Client(
            _Line(self),
            client_id=self.client.client_id,
            client_secret=self.client.client_secret,
            token_endpoint_auth_method="client_secret_basic" if basic else "client_secret_post",
            scope=" ".join((*SCOPES, *(each for each in (claim,) if each in offered))),
            redirect_uri=self.client.redirect_uri,
            code_challenge_method="S256",
        )

    def _ask_offer(self) -> Offer:
        """Discovery 1.0, section 4: the document must name the very issuer it was asked of."""
        document = self._document(self.client.issuer.rstrip("/") + WELL_KNOWN)
        if document.get("issuer") != self.client.issuer:
            raise IssuerUnreachable("names_another_issuer")
        for name in (*ENDPOINTS, LEAVING):
            if name in ENDPOINTS or name in document:
                _guard(document.get(name), name)
        keys = oidc_tokens.usable_keys(self._document(document["jwks_uri"]))
        return Offer(document, tuple(keys), steady())

    def _document(self, url: str) -> Mapping[str, Any]:
        answer = self.ask("GET", url, _PLAIN)
        if answer.status != 200:
            raise IssuerUnreachable(f"status_{answer.status}")
        try:
            found = json.loads(answer.body)
        except ValueError:
            raise IssuerUnreachable("not_json") from None
        if not isinstance(found, dict):
            raise IssuerUnreachable("not_json")
        return found

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> HttpAnswer:
        """One question. Raises `IssuerUnreachable`."""
        line = TimedHttp(self._tls, method)
        try:
            return line.request(
                method, httpcore2.URL(url), headers, body, limit_s=LIMIT_S, max_bytes=LARGEST
            )
        except HttpTroubleError as error:
            raise IssuerUnreachable(error.what) from None
        finally:
            line.close()


def _guard(url: object, name: str) -> None:
    try:
        read_guarded_endpoint(url if isinstance(url, str) else "")
    except Unusable:
        raise IssuerUnreachable(f"no_usable_{name}") from None


class _Line:
    """What the protocol's library speaks through in place of a client of its own."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer

    def post(self, url: str, data: Mapping[str, str], headers: Mapping[str, str], auth: Any) -> Any:
        """Send a form, with the client's credentials; an answer as the library reads it."""
        url, signed, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        answer = self._issuer.ask("POST", url, signed, body.encode())
        if answer.status >= 500 or answer.status == 429:
            raise IssuerUnreachable(f"status_{answer.status}")
        return _Answer(answer.status, answer.body)


@dataclass(frozen=True, slots=True)
class _Answer:
    status_code: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise ValueError
