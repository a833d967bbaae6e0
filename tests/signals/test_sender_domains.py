"""Verdicts on DKIM and alignment, and on whatever else a record may hold."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as some

from notifier.signals.sender_domains import Sending, check, not_asked
from notifier.signals.sender_domains_dkim import check_dkim
from notifier.signals.sender_findings import LONGEST_TEXT, Kind, Verdict, presented, tags_of
from tests.dns_server import Zone
from tests.signals.asking_dns import HOME, Ask, Fixed, fail, said


def rsa_key(bits: int) -> str:
    key = rsa.RSAPublicNumbers(65537, 2 ** (bits - 1) + 24691).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


# --- DKIM


@pytest.mark.parametrize(
    ("record", "verdict", "words"),
    [
        (f"v=DKIM1; k=rsa; p={rsa_key(2048)}", Verdict.PASS, ""),
        (f"p={rsa_key(2048)}", Verdict.PASS, ""),
        (f"v=DKIM1; k=ed25519; p={base64.b64encode(bytes(32)).decode()}", Verdict.PASS, ""),
        (f"v=DKIM1; p={rsa_key(1024)}", Verdict.WARN, "1024 bits"),
        (f"v=DKIM1; t=y:s; p={rsa_key(2048)}", Verdict.WARN, "testing"),
        (f"v=DKIM1; p={rsa_key(768)}", Verdict.FAIL, "768 bits"),
        ("v=DKIM1; p=", Verdict.FAIL, "revoked"),
        ("v=DKIM1; k=rsa", Verdict.FAIL, "p is missing"),
        ("v=DKIM2; p=AAAA", Verdict.FAIL, "DKIM1"),
        ("p=AAAA; v=DKIM1", Verdict.FAIL, "must come first"),
        ("v=DKIM1; p=AAAA; p=AAAA", Verdict.FAIL, "twice"),
        ("v=DKIM1; p=!!!", Verdict.FAIL, "not base64"),
        ("v=DKIM1; p=AAAA", Verdict.FAIL, "no RSA public key"),
        ("v=DKIM1; k=ed25519; p=AAAA", Verdict.FAIL, "32 bytes"),
        ("v=DKIM1; k=mayfly; p=AAAA", Verdict.FAIL, "no key of type mayfly"),
        (f"v=DKIM1; h=sha1; p={rsa_key(2048)}", Verdict.FAIL, "sha256"),
        (f"v=DKIM1; s=tlsrpt; p={rsa_key(2048)}", Verdict.FAIL, "not for email"),
        ("hello", Verdict.FAIL, "no tag"),
    ],
)
def test_a_key_is_judged_by_its_kind_length_and_purpose(
    zone: Zone, ask: Ask, record: str, verdict: Verdict, words: str
) -> None:
    zone.txt(f"s1._domainkey.{HOME}", record)
    found = check_dkim(HOME, "s1", ask())
    assert (found.verdict, words in said(found)) == (verdict, True), said(found)
    assert (found.selector, found.texts) == ("s1", (record,))


def test_kind_and_length_of_a_key_stand_beside_it(zone: Zone, ask: Ask) -> None:
    zone.txt(f"s1._domainkey.{HOME}", f"v=DKIM1; p={rsa_key(2048)}")
    assert check_dkim(HOME, "s1", ask()).facts == {"key": "rsa", "bits": "2048"}


def test_no_key_and_two_keys_both_fail(zone: Zone, ask: Ask) -> None:
    assert "no key under the selector s1" in said(check_dkim(HOME, "s1", ask()))
    zone.txt(f"s1._domainkey.{HOME}", "p=", f"p={rsa_key(2048)}")
    assert check_dkim(HOME, "s1", ask()).verdict is Verdict.FAIL


@pytest.mark.parametrize("trouble", ["SERVFAIL", "silence"])
def test_a_failed_look_up_makes_a_key_and_what_rests_on_it_unknown(
    zone: Zone, ask: Ask, trouble: str
) -> None:
    fail(zone, f"s1._domainkey.{HOME}", trouble)
    found = {each.kind: each for each in check(HOME, Sending((HOME,), ("s1",)), ask())}
    assert found[Kind.DKIM].verdict is Verdict.UNKNOWN
    assert found[Kind.SPF].verdict is Verdict.FAIL
    assert found[Kind.ALIGNMENT].verdict is Verdict.UNKNOWN


# --- alignment


@pytest.mark.parametrize(
    ("spf", "key", "own_envelope", "verdict"),
    [
        (True, True, True, Verdict.PASS),
        (False, True, True, Verdict.PASS),
        (True, False, True, Verdict.WARN),
        (False, False, True, Verdict.FAIL),
        (True, True, False, Verdict.PASS),
        (True, False, False, Verdict.UNKNOWN),
    ],
)
def test_mail_is_aligned_by_a_signature_or_by_its_own_envelope(
    zone: Zone, ask: Ask, spf: bool, key: bool, own_envelope: bool, verdict: Verdict
) -> None:
    if spf:
        zone.txt(HOME, "v=spf1 ip4:192.0.2.1 -all")
    if key:
        zone.txt(f"s1._domainkey.{HOME}", f"p={rsa_key(2048)}")
    sending = Sending((HOME,), ("s1",), own_envelope=own_envelope)
    assert check(HOME, sending, ask())[-1].verdict is verdict


def test_without_a_selector_no_key_is_known_and_none_is_asked_for(zone: Zone, ask: Ask) -> None:
    dkim = check(HOME, Sending((HOME,)), ask())[1]
    assert (dkim.kind, dkim.verdict) == (Kind.DKIM, Verdict.UNKNOWN)
    assert "NOTIFIER_DKIM_SELECTORS" in said(dkim)
    assert not any("_domainkey" in name for _, name, _ in zone.asked)


def test_a_reserved_domain_is_unknown_throughout() -> None:
    found = not_asked("reset.test")
    assert {each.verdict for each in found} == {Verdict.UNKNOWN}
    assert {each.kind for each in found} == set(Kind)


# --- what strangers wrote


HOSTILE = [
    b"v=spf1 \x00\x1b[31m\x07 -all",
    "v=spf1 \u202egro.\u2066 -all".encode(),
    b"v=spf1 <script>alert(1)</script> -all",
    b"v=spf1 \xff\xfe include:\xff.example -all",
    b"v=spf1 redirect=" + b"%{" * 2000,
    b"v=spf1 " + b"include:" + b"a." * 300 + b"example",
    b"v=spf1 " + b"a:" * 5000,
    b"v=spf1 \\000\\\\ -all",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_record_holds_is_judged_and_shown_as_plain_text(
    zone: Zone, ask: Ask, text: bytes
) -> None:
    for name in (HOME, f"_dmarc.{HOME}", f"s1._domainkey.{HOME}"):
        zone.txt(name, text, text.replace(b"v=spf1", b"v=DMARC1; p=reject; rua="))
    for found in check(HOME, Sending((HOME,), ("s1",)), ask()):
        shown = [found.name, *found.texts, *found.reasons, *found.facts.values()]
        assert all(each.isascii() and each.isprintable() for each in shown)
        assert all(len(each) <= LONGEST_TEXT for each in shown)


@given(some.binary(max_size=300))
def test_no_octets_upset_a_verdict(raw: bytes) -> None:
    text = raw.decode("latin-1")
    dns = Fixed(
        {
            HOME: f"v=spf1 {text}", f"_dmarc.{HOME}": f"v=DMARC1;{text}",
            f"s1._domainkey.{HOME}": text,
        }
    )  # fmt: skip
    for found in check(HOME, Sending((HOME,), ("s1",)), dns):
        shown = [*found.texts, *found.reasons, *found.facts.values()]
        assert all(each.isascii() and each.isprintable() for each in shown)


def test_octets_are_shown_as_zone_files_write_them() -> None:
    assert presented("a\\b\x00é") == "a\\\\b\\000\\233"
    assert tags_of("a=1; b ;c = 2;; =3") == ([("a", "1"), ("c", "2")], ["b", "=3"])
