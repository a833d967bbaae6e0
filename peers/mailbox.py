"""What the inbox keeps: mails as they came over the wire, and texts."""

from __future__ import annotations

import email
import email.policy
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any

KEPT_MESSAGES = 5_000


@dataclass(frozen=True, slots=True)
class Mail:
    """One message as it was taken from the wire."""

    number: int
    sender: str
    recipients: tuple[str, ...]
    raw: bytes
    fate: str
    envelope_id: str | None = None
    via: str = "SMTP"
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def parsed(self) -> EmailMessage:
        """The message through the standard library's parser."""
        message = email.message_from_bytes(self.raw, policy=email.policy.default)
        assert isinstance(message, EmailMessage)  # noqa: S101 - what this policy makes
        return message


@dataclass(frozen=True, slots=True)
class Text:
    """One text message, put here by a stand-in for an SMS provider."""

    number: int
    sender: str
    recipient: str
    body: str
    reference: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


def raw_mail(given: Mapping[str, Any]) -> bytes:
    """A message as its reader's mail system has it, from what an HTTP provider was given."""
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"], message["To"] = str(given["from"]), str(given["to"])
    message["Subject"] = str(given.get("subject") or "")
    message.set_content(str(given.get("text") or ""))
    if given.get("html"):
        message.add_alternative(str(given["html"]), subtype="html")
    return message.as_bytes()


def headers_of(raw: bytes) -> dict[str, str]:
    """The header fields of a message, unfolded, names in lower case; the first one counts."""
    head = raw.partition(b"\r\n\r\n")[0].decode("utf-8", "replace")
    found: dict[str, str] = {}
    for line in head.replace("\r\n ", " ").replace("\r\n\t", " ").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), value.strip())
    return found


def message_id_of(headers: dict[str, str]) -> str | None:
    """The Message-ID without its brackets."""
    return headers.get("message-id", "").strip("<> ") or None


def reference_of(headers: dict[str, str], envelope_id: str | None) -> str | None:
    """The sender's reference: ENVID, else what the Message-ID begins with, up to a dot."""
    left = (message_id_of(headers) or "").partition("@")[0]
    return envelope_id or left.partition(".")[0] or None


def bodies_of(message: EmailMessage) -> tuple[str | None, str | None]:
    """The plain and the HTML body, where there is one."""
    found = []
    for kind in ("plain", "html"):
        part = message.get_body(preferencelist=(kind,))
        found.append(None if part is None else str(part.get_content()).replace("\r\n", "\n"))
    return found[0], found[1]


class Mailbox:
    """The newest mails and texts, safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mails: deque[Mail] = deque(maxlen=KEPT_MESSAGES)
        self._texts: deque[Text] = deque(maxlen=KEPT_MESSAGES)
        self._number = 0

    def keep_mail(
        self,
        sender: str,
        recipients: tuple[str, ...],
        raw: bytes,
        fate: str,
        envelope_id: str | None = None,
        *,
        via: str = "SMTP",
    ) -> Mail:
        """Keep one mail; its number is its place in the order of arrival."""
        with self._lock:
            self._number += 1
            mail = Mail(self._number, sender, recipients, raw, fate, envelope_id, via)
            self._mails.append(mail)
            return mail

    def keep_text(self, sender: str, recipient: str, body: str, reference: str | None) -> Text:
        """Keep one text."""
        with self._lock:
            self._number += 1
            text = Text(self._number, sender, recipient, body, reference)
            self._texts.append(text)
            return text

    def mails(self, recipient: str | None = None, limit: int = KEPT_MESSAGES) -> list[Mail]:
        """Mails, newest first; only those to `recipient` where one is named."""
        with self._lock:
            newest = list(reversed(self._mails))
        return [m for m in newest if recipient is None or recipient in m.recipients][:limit]

    def texts(self, limit: int = KEPT_MESSAGES) -> list[Text]:
        """Texts, newest first."""
        with self._lock:
            return list(reversed(self._texts))[:limit]

    def mail(self, number: int) -> Mail | None:
        """One mail by its number, if it is still kept."""
        with self._lock:
            return next((m for m in self._mails if m.number == number), None)
