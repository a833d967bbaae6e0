"""The app's settings for `make run`: secrets that outlive a restart, and where the peers are."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from peers.twilio import ACCOUNT_SID

POLICY_FILE = Path(__file__).with_name("policy.toml")
FROM_ADDRESS = "no-reply@example.test"
FROM_NUMBER = "+447700900000"
EMAIL_PROVIDERS = ("postmark", "resend", "smtp")


def _webhook_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


@dataclass(frozen=True, slots=True)
class Secrets:
    """Random secrets of one data folder; `load` makes them once."""

    ingest: str
    link: str
    session_key: str
    fingerprint_key: str
    checkpoint_key: str
    api_token: str
    postmark_token: str
    postmark_callback_password: str
    resend_api_key: str
    resend_webhook_secret: str
    twilio_auth_token: str

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read them; make and keep what is missing where only the owner can read."""
        kept = json.loads(path.read_text()) if path.exists() else {}
        fresh = cls(
            ingest=_webhook_secret(),
            link=_webhook_secret(),
            session_key=secrets.token_hex(32),
            fingerprint_key=secrets.token_hex(32),
            checkpoint_key=secrets.token_hex(32),
            api_token=secrets.token_urlsafe(32),
            postmark_token=secrets.token_hex(16),
            postmark_callback_password=secrets.token_urlsafe(24),
            resend_api_key=f"re_{secrets.token_urlsafe(24)}",
            resend_webhook_secret=_webhook_secret(),
            twilio_auth_token=secrets.token_hex(16),
        )
        known = cls(**(asdict(fresh) | kept))
        if asdict(known) != kept:
            write_privately(path, json.dumps(asdict(known)))
        return known

    def ingest_hex(self) -> str:
        """The ingest secret's bytes as hex digits, as openssl wants a key."""
        return base64.b64decode(self.ingest.removeprefix("whsec_")).hex()


def write_privately(path: Path, content: str) -> None:
    """Write a file that only its owner can read; it never exists with wider rights."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the stand-ins are."""

    link_url: str
    smtp_port: int
    postmark_url: str
    resend_url: str
    twilio_url: str


def settings(
    known: Secrets, around: Surroundings, *, data_dir: Path, port: int, email: str = "postmark"
) -> dict[str, str]:
    """The environment variables of the contract, section 4; `email` is the provider that sends."""
    return {
        "NOTIFIER_DATA_DIR": str(data_dir),
        "NOTIFIER_BIND": f"127.0.0.1:{port}",
        "NOTIFIER_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "NOTIFIER_LINK_URL": around.link_url,
        "NOTIFIER_POLICY_FILE": str(POLICY_FILE),
        **_keys(known),
        **_providers(known, around, email),
    }


def _keys(known: Secrets) -> dict[str, str]:
    token_digest = hashlib.sha256(known.api_token.encode()).hexdigest()
    return {
        "NOTIFIER_INGEST_SECRETS": known.ingest,
        "NOTIFIER_LINK_SECRET": known.link,
        "NOTIFIER_API_TOKENS": f"local:status+tickets+metrics:{token_digest}",
        "NOTIFIER_SECRET_KEY": known.session_key,
        "NOTIFIER_FINGERPRINT_KEY": known.fingerprint_key,
        "NOTIFIER_CHECKPOINT_KEY": known.checkpoint_key,
    }


def _providers(known: Secrets, around: Surroundings, email: str) -> dict[str, str]:
    others = [name for name in EMAIL_PROVIDERS if name != email]
    return {
        "NOTIFIER_EMAIL_PROVIDERS": ",".join([email, *others]),
        "NOTIFIER_EMAIL_FROM": FROM_ADDRESS,
        "NOTIFIER_SMTP_URL": f"smtp://127.0.0.1:{around.smtp_port}",
        "NOTIFIER_POSTMARK_TOKEN": known.postmark_token,
        "NOTIFIER_POSTMARK_CALLBACK_PASSWORD": known.postmark_callback_password,
        "NOTIFIER_POSTMARK_BASE_URL": around.postmark_url,
        "NOTIFIER_RESEND_API_KEY": known.resend_api_key,
        "NOTIFIER_RESEND_WEBHOOK_SECRET": known.resend_webhook_secret,
        "NOTIFIER_RESEND_BASE_URL": around.resend_url,
        "NOTIFIER_SMS_PROVIDERS": "twilio",
        "NOTIFIER_TWILIO_ACCOUNT_SID": ACCOUNT_SID,
        "NOTIFIER_TWILIO_AUTH_TOKEN": known.twilio_auth_token,
        "NOTIFIER_TWILIO_FROM": FROM_NUMBER,
        "NOTIFIER_TWILIO_BASE_URL": around.twilio_url,
    }


def mail_only(
    known: Secrets, *, data_dir: Path, port: int, link_url: str, smtp_port: int
) -> dict[str, str]:
    """The same for email through the SMTP inbox alone: one channel, no provider's callbacks."""
    return {
        "NOTIFIER_DATA_DIR": str(data_dir),
        "NOTIFIER_BIND": f"127.0.0.1:{port}",
        "NOTIFIER_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "NOTIFIER_LINK_URL": link_url,
        "NOTIFIER_POLICY_FILE": str(POLICY_FILE),
        "NOTIFIER_EMAIL_PROVIDERS": "smtp",
        "NOTIFIER_EMAIL_FROM": FROM_ADDRESS,
        "NOTIFIER_SMTP_URL": f"smtp://127.0.0.1:{smtp_port}",
        **_keys(known),
    }
