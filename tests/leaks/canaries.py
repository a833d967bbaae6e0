"""Unmistakable secrets, addresses and numbers of one run, and every way each may be written."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import quopri
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from notifier.domain.destinations import check_email

MESSAGE_SENTENCE = "Somebody, probably you, asked to reset"
"""From the body of the password-reset template."""


def _letters(count: int) -> str:
    """A name with many digits would stand in no message."""
    return "".join(secrets.choice("abcdefghijklmnop") for _ in range(count))


@dataclass(slots=True)
class Canaries:
    """What is planted. Letters and digits only, so that no escaping can hide the core of one."""

    local: str = field(default_factory=lambda: f"quillcan{secrets.token_hex(5)}")
    domain: str = field(default_factory=lambda: f"zebradom{secrets.token_hex(5)}")
    token: str = field(default_factory=lambda: f"linktok{secrets.token_hex(12)}")
    name: str = field(default_factory=lambda: f"Zebrafina Quil{_letters(10)}")
    subscriber: str = field(default_factory=lambda: f"7700900{secrets.randbelow(900) + 100}")
    account_password: str = field(default_factory=lambda: f"accpw{secrets.token_hex(10)}")
    smtp_user: str = field(default_factory=lambda: f"smtpuser{secrets.token_hex(6)}")
    smtp_password: str = field(default_factory=lambda: f"smtppw{secrets.token_hex(10)}")
    addresses: set[str] = field(default_factory=set)
    config: dict[str, str] = field(default_factory=dict)
    """Secrets among the settings, by name."""
    sessions: dict[str, str] = field(default_factory=dict)
    """What a browser is told once, in its own cookie, by name."""

    def address(self, tag: str = "") -> str:
        """A canary address; what stands before `+` is the inbox's fate."""
        made = (
            f"{tag}+{self.local}@{self.domain}.test" if tag else f"{self.local}@{self.domain}.test"
        )
        self.addresses.add(made)
        return made

    def foreign_address(self) -> str:
        """One with a domain that is not ASCII, which is sent to in its other form."""
        made = f"{self.local}@b\N{LATIN SMALL LETTER U WITH DIAERESIS}{self.domain}.test"
        sent_to = check_email(made)
        assert sent_to is not None
        self.addresses |= {made, sent_to.reveal()}
        return made

    def link(self, tag: str = "") -> str:
        """A reset link that holds the token."""
        return f"https://{self.domain}.test/reset/{self.token}?for={tag or 'all'}"

    @property
    def number(self) -> str:
        """The number as it is sent to."""
        return f"+44{self.subscriber}"

    def spellings(self) -> list[str]:
        """The number as people write it."""
        area, rest = self.subscriber[:4], self.subscriber[4:]
        return [
            self.number,
            f"0{self.subscriber}",
            f"+44 {area} {rest}",
            f"+44 (0){area}-{rest}",
            f"0044{self.subscriber}",
        ]

    def needles(self, *, sessions: bool = True) -> Iterator[Needle]:
        """Everything to search for, each distinct spelling once."""
        personal = {
            "local part": self.local,
            "domain": self.domain,
            "reset token": self.token,
            "name": self.name,
            "message text": MESSAGE_SENTENCE,
            "number": self.subscriber,
            **{f"number as {each}": each for each in self.spellings()},
            "account password": self.account_password,
            "SMTP password": self.smtp_password,
            "SMTP user": self.smtp_user,
        }
        seen: set[bytes] = set()
        told = self.sessions if sessions else {}
        for label, value in {**personal, **self.config, **told}.items():
            yield from _fresh(seen, label, written(value))
        guessable = (self.address(), self.token, self.link(), *self.spellings()[:2], self.name)
        for each in (*guessable, self.account_password, self.smtp_password):
            yield from _fresh(seen, f"{each}, digested", digests(each))


@dataclass(frozen=True, slots=True)
class Needle:
    """Bytes to look for, in small letters, and what they would prove."""

    label: str
    form: str
    content: bytes


def _fresh(seen: set[bytes], label: str, forms: Iterator[tuple[str, bytes]]) -> Iterator[Needle]:
    for form, content in forms:
        small = content.lower()
        if small not in seen:
            seen.add(small)
            yield Needle(label, form, small)


def written(value: str) -> Iterator[tuple[str, bytes]]:
    """A value in every encoding that something on its way might give it."""
    plain = value.encode()
    yield "plain", plain
    yield "hex", plain.hex().encode()
    yield "UTF-16", value.encode("utf-16-le")[:-1]  # the other order has it from its second byte
    for offset in range(3):
        yield f"base64 at {offset}", base64_core(plain, offset)
        yield f"base64url at {offset}", base64_core(plain, offset, b"-_")
    yield "percent", quote(value, safe="").encode()
    yield "percent twice", quote(quote(value, safe=""), safe="").encode()
    yield "percent, every byte", b"".join(b"%%%02x" % byte for byte in plain)
    yield "quoted-printable", quopri.encodestring(plain, quotetabs=True)
    yield "JSON", json.dumps(value)[1:-1].encode()
    yield "HTML", html.escape(value).encode()
    yield "backwards", plain[::-1]


def base64_core(plain: bytes, offset: int, marks: bytes = b"+/") -> bytes:
    """The base64 letters that depend on `plain` alone when it begins at this place of a triple."""
    encoded = base64.b64encode(b"\0" * offset + plain, marks).rstrip(b"=")
    first = (offset * 8 + 5) // 6
    last = (offset + len(plain)) * 8 // 6
    return encoded[first:last]


def digests(value: str) -> Iterator[tuple[str, bytes]]:
    """Digests without a key, which anybody can guess: a made-up list of addresses is enough."""
    for spelling in sorted({value, value.lower(), value.upper()}):
        for kind in ("md5", "sha1", "sha256"):
            digest = hashlib.new(kind, spelling.encode(), usedforsecurity=False)
            yield f"{kind}, hex", digest.hexdigest().encode()
            yield f"{kind}, raw", digest.digest()
            yield f"{kind}, base64", base64.b64encode(digest.digest()).rstrip(b"=")
