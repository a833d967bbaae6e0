"""Judges a DKIM key as DNS publishes it (RFC 6376; lengths RFC 8301, Ed25519 RFC 8463)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from typing import Final

from notifier.ports.dns import Answer, Dns, Found
from notifier.signals.sender_findings import (
    Finding,
    Kind,
    Remark,
    Verdict,
    failed,
    finding,
    not_looked_up,
    quoted,
    tags_of,
)

LEAST_BITS: Final = 1024
GOOD_BITS: Final = 2048
ED25519_BYTES: Final = 32


def check_dkim(domain: str, selector: str, dns: Dns) -> Finding:
    """The key under one selector."""
    name = f"{selector}._domainkey.{domain}"
    answer = dns.ask(name, "TXT")
    facts: dict[str, str] = {}
    if failed(answer):
        remarks = [not_looked_up(name, answer)]
    elif not answer.texts:
        remarks = [Remark(Verdict.FAIL, f"there is no key under the selector {selector}")]
    elif len(answer.texts) > 1:
        words = f"{len(answer.texts)} records under one selector: nobody knows which one counts"
        remarks = [Remark(Verdict.FAIL, words)]
    else:
        remarks = _key(answer.texts[0], facts)
    found = finding(Kind.DKIM, name, answer, remarks, facts, texts=answer.texts)
    return replace(found, selector=selector)


def no_selector(domain: str) -> Finding:
    """Without a selector there is no name to ask for: not known, which is not the same as wrong."""
    words = "no selector is named in NOTIFIER_DKIM_SELECTORS, so no key was looked for"
    remark = Remark(Verdict.UNKNOWN, words)
    return finding(Kind.DKIM, f"_domainkey.{domain}", Answer(Found.FAILED), [remark], {})


def _key(text: str, facts: dict[str, str]) -> list[Remark]:
    pairs, odd = tags_of(text)
    tags = dict(pairs)
    wrong = _form(pairs, odd)
    if wrong:
        return [Remark(Verdict.FAIL, wrong)]
    if not "".join(tags["p"].split()):
        return [Remark(Verdict.FAIL, "the key was revoked: p is empty")]
    facts["key"] = tags.get("k", "rsa").lower()
    return [*_scope(tags), *_strength(tags["p"], facts)]


def _form(pairs: list[tuple[str, str]], odd: list[str]) -> str | None:
    """What makes verifiers ignore the record."""
    names = [name for name, _ in pairs]
    tags = dict(pairs)
    if odd:
        return f'"{quoted(odd[0])}" is no tag'
    if len(set(names)) < len(names):
        return "a tag stands there twice"
    if "v" in tags and (names[0] != "v" or tags["v"] != "DKIM1"):
        return "v must come first and be DKIM1"
    return None if "p" in tags else "it holds no key: p is missing"


def _scope(tags: dict[str, str]) -> list[Remark]:
    """What the key may be used for."""
    said = []
    hashes = {each.strip() for each in tags.get("h", "sha256").split(":")}
    services = {each.strip() for each in tags.get("s", "*").split(":")}
    if "sha256" not in hashes:
        said.append(Remark(Verdict.FAIL, f"it permits only {quoted(tags['h'])}, and not sha256"))
    if not services & {"*", "email"}:
        said.append(Remark(Verdict.FAIL, f"it is not for email but for {quoted(tags['s'])}"))
    if "y" in {each.strip() for each in tags.get("t", "").split(":")}:
        said.append(Remark(Verdict.WARN, "t=y: the domain says that it is only testing"))
    return said


def _strength(key: str, facts: dict[str, str]) -> list[Remark]:
    try:
        raw = base64.b64decode("".join(key.split()), validate=True)
    except (binascii.Error, ValueError):
        return [Remark(Verdict.FAIL, "the key is not base64")]
    match facts["key"]:
        case "rsa":
            return _rsa(raw, facts)
        case "ed25519":
            facts["bits"] = str(8 * len(raw))
            if len(raw) == ED25519_BYTES:
                return []
            return [
                Remark(Verdict.FAIL, f"an Ed25519 key has {ED25519_BYTES} bytes, not {len(raw)}")
            ]
        case other:
            return [Remark(Verdict.FAIL, f"verifiers know no key of type {quoted(other)}")]


def _rsa(raw: bytes, facts: dict[str, str]) -> list[Remark]:
    bits = _rsa_bits(raw)
    if bits is None:
        return [Remark(Verdict.FAIL, "the key is no RSA public key")]
    facts["bits"] = str(bits)
    if bits < LEAST_BITS:
        return [Remark(Verdict.FAIL, f"{bits} bits: verifiers refuse keys under {LEAST_BITS}")]
    if bits < GOOD_BITS:
        return [Remark(Verdict.WARN, f"{bits} bits: a key should have {GOOD_BITS} (RFC 8301)")]
    return []


def _rsa_bits(raw: bytes) -> int | None:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - seldom needed
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_der_public_key  # noqa: PLC0415

    try:
        key = load_der_public_key(raw)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key.key_size if isinstance(key, RSAPublicKey) else None
