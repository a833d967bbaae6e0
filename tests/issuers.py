"""Two issuers for tests: a real provider in a process of its own, and one that can lie.

The real one tells whether we speak the protocol; the lying one signs, names and answers whatever
a test wants, and holds us to what a good provider holds a client to (PKCE, one use of a code).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from joserfc import jws
from joserfc.jwk import ECKey

from notifier.accounts.oidc import Client
from notifier.accounts.permissions import Role
from tests.ports import port_to_bind
from tests.running import until

CLIENT_ID, CLIENT_SECRET = "reset-notices", "a secret between the two"


def client_at(issuer: str, base: str = "http://127.0.0.1", **more: Any) -> Client:
    """Ourselves at this issuer; people come back below `base`."""
    facts: dict[str, Any] = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "role_claim": "groups",
        "redirect_uri": f"{base}/login/sso/return",
        "left_uri": f"{base}/login",
        "roles": {role.value: role for role in Role},
        "ordered": False,
    }
    return Client(issuer=issuer, **{**facts, **more})


@contextmanager
def real_provider(people: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The address of `oidc-provider-mock` with these people: subject to claims."""
    port = port_to_bind()
    known = [json.dumps({"sub": sub, **claims}) for sub, claims in people.items()]
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)]
    command += [word for each in known for word in ("--user-claims", each)]
    url = f"http://127.0.0.1:{port}"
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    with subprocess.Popen(
        command, env=inherited, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            until(lambda: _answers(f"{url}/jwks"), 60, "the provider to answer")
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=5).is_success
    except httpx2.TransportError:
        return False


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def new_key(kid: str = "first") -> ECKey:
    """A signing key of an issuer."""
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


@dataclass
class LyingIssuer:
    """What it says next. `token_claims` and `document` change single entries; None drops one."""

    url: str = ""
    key: ECKey = field(default_factory=new_key)
    published: list[dict[str, Any]] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)
    token_claims: dict[str, Any] = field(default_factory=dict)
    forge: Any = None
    """Makes the token's text out of header and claims in place of an honest signature."""
    hangs: threading.Event | None = None
    asked: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.publish(self.key)

    def publish(self, *keys: ECKey) -> None:
        """Show these keys from now on; sign with the first."""
        self.key = keys[0]
        self.published = [each.as_dict(private=False) for each in keys]

    def authorize(self, address: str) -> str:
        """What the browser is sent back to us with, for the address that we sent it to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self._codes)}-{time.monotonic_ns()}"
        self._codes[code] = asked
        back = urlsplit(asked["redirect_uri"]).path
        return f"{back}?{urlencode({'code': code, 'state': asked['state']})}"

    def answer(self, path: str, form: Mapping[str, str], credentials: str) -> tuple[int, Any]:
        """Status and document for one request."""
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            return 200, self._changed(
                {
                    "issuer": self.url,
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                    "jwks_uri": f"{self.url}/keys",
                    "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
                },
                self.document,
            )
        if path == "/keys":
            return 200, {"keys": self.published}
        return self._token(form, credentials)

    def _token(self, form: Mapping[str, str], credentials: str) -> tuple[int, Any]:
        asked = self._codes.pop(form.get("code", ""), None)
        shared = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        verifier = form.get("code_verifier", "").encode()
        if (
            asked is None
            or credentials != f"Basic {shared}"
            or asked["code_challenge"] != _b64(hashlib.sha256(verifier).digest())
            or asked["redirect_uri"] != form["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        access = "an-access-token"
        now = int(time.time())
        claims = {"iss": self.url, "sub": "sub-ada", "aud": CLIENT_ID, "iat": now,
                  "exp": now + 300, "nonce": asked["nonce"], "preferred_username": "ada",
                  "groups": ["support"],
                  "at_hash": _b64(hashlib.sha256(access.encode()).digest()[:16])}  # fmt: skip
        made = self._changed(claims, self.token_claims)
        header = {"alg": "ES256", "kid": self.key.kid}
        token = (self.forge or self.signed)(header, made)
        return 200, {"access_token": access, "token_type": "Bearer", "id_token": token}

    def signed(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        """An honest signature."""
        return jws.serialize_compact(header, json.dumps(claims), self.key, algorithms=["ES256"])

    @staticmethod
    def _changed(entries: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        made = {**entries, **changes}
        return {name: value for name, value in made.items() if value is not None}


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """A token with `alg` none."""
    parts = (json.dumps({**header, "alg": "none"}), json.dumps(claims))
    return ".".join(_b64(each.encode()) for each in parts) + "."


def signed_with_secret(secret: bytes) -> Any:
    """Makes tokens with HS256 and a secret that others know too."""

    def forge(header: dict[str, Any], claims: dict[str, Any]) -> str:
        parts = (json.dumps({**header, "alg": "HS256"}), json.dumps(claims))
        text = ".".join(_b64(each.encode()) for each in parts)
        return f"{text}.{_b64(hmac.digest(secret, text.encode(), 'sha256'))}"

    return forge


def altered(issuer: LyingIssuer) -> Any:
    """Makes tokens whose claims were changed after they were signed."""

    def forge(header: dict[str, Any], claims: dict[str, Any]) -> str:
        head, _, signature = issuer.signed(header, claims).split(".")
        return f"{head}.{_b64(json.dumps({**claims, 'groups': ['admin']}).encode())}.{signature}"

    return forge


@contextmanager
def lying_issuer() -> Iterator[LyingIssuer]:
    """One on a socket of its own."""
    issuer = LyingIssuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._reply({name: values[0] for name, values in parse_qs(text).items()})

        def _reply(self, form: Mapping[str, str]) -> None:
            if issuer.hangs is not None:
                issuer.hangs.wait(60)
            credentials = self.headers.get("Authorization", "")
            status, document = issuer.answer(self.path, form, credentials)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that stopped waiting is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield issuer
    server.shutdown()
    thread.join()
    server.server_close()
