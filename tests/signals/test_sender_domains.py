"""Verdicts on SPF, DKIM, DMARC and alignment, as a real server on loopback gives the records."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest
from checkdmarc.dmarc import DMARCError, parse_dmarc_record
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as some

from notifier.ports.dns import Answer, Found
from notifier.signals.dns import Resolver
from notifier.signals.sender_domains import Sending, check, not_asked
from notifier.signals.sender_domains_dkim import check_dkim
from notifier.signals.sender_domains_dmarc import REMOVED, above, check_dmarc
from notifier.signals.sender_domains_spf import check_spf
from notifier.signals.sender_findings import (
    LONGEST_TEXT,
    Finding,
    Kind,
    Verdict,
    presented,
    tags_of,
)
from tests.dns_server import Zone, running

HOME = "mail.example"
RUA = "; rua=mailto:dmarc@mail.example"
Ask = Callable[[], Resolver]


@pytest.fixture
def zone() -> Zone:
    return Zone()


@pytest.fixture
def ask(zone: Zone) -> Iterator[Ask]:
    """A fresh check; patient but for names that are silent."""
    with running(zone) as port:
        yield lambda: Resolver([("127.0.0.1", port)], 0.05 if zone.silent else 30.0, 60.0)


def rsa_key(bits: int) -> str:
    key = rsa.RSAPublicNumbers(65537, 2 ** (bits - 1) + 24691).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


def said(found: Finding) -> str:
    return " | ".join(found.reasons)


# --- SPF


@pytest.mark.parametrize(
    ("record", "verdict", "words"),
    [
        ("v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 -all", Verdict.PASS, ""),
        ("V=SPF1 a mx -all", Verdict.PASS, ""),
        ("v=spf1 a:host.example/24//64 ~all", Verdict.PASS, ""),
        ("v=spf1 exists:%{i}._spf.%{d} -all", Verdict.PASS, ""),
        ("v=spf1 unheard-of=this -all", Verdict.PASS, ""),
        ("v=spf1 a", Verdict.WARN, "no all"),
        ("v=spf1 ?all", Verdict.WARN, "says nothing"),
        ("v=spf1 ptr -all", Verdict.WARN, "must not be used"),
        ("v=spf1 a:gone.example -all", Verdict.WARN, "finds nothing"),
        ("v=spf1 +all", Verdict.FAIL, "lets everybody send"),
        ("v=spf1 all", Verdict.FAIL, "lets everybody send"),
        ("v=spf1 ip4:300.1.1.1 -all", Verdict.FAIL, "no network"),
        ("v=spf1 ip4:192.0.2.0/024 -all", Verdict.FAIL, "no network"),
        ("v=spf1 ip6:192.0.2.1 -all", Verdict.FAIL, "no network"),
        ("v=spf1 inclde:host.example -all", Verdict.FAIL, "no mechanism"),
        ("v=spf1 include -all", Verdict.FAIL, "names no domain"),
        ("v=spf1 a: -all", Verdict.FAIL, "names no domain"),
        ("v=spf1 -all:x", Verdict.FAIL, "takes no value"),
        ("v=spf1 $$ -all", Verdict.FAIL, "no SPF term"),
        ("v=spf1 redirect=a.example redirect=b.example", Verdict.FAIL, "may not"),
        ("v=spf1 include:host.example -all", Verdict.FAIL, "no SPF record"),
        ("v=spf1 redirect=gone.example", Verdict.FAIL, "no SPF record"),
        ("v=spf10 -all", Verdict.FAIL, "there is no SPF record"),
        (" v=spf1 -all", Verdict.FAIL, "there is no SPF record"),
    ],
)
def test_an_spf_record_is_judged_as_receivers_do(
    zone: Zone, ask: Ask, record: str, verdict: Verdict, words: str
) -> None:
    zone.txt(HOME, "unrelated=1", record)
    zone.a(HOME)
    zone.mx(HOME, "mx.mail.example")
    zone.aaaa("host.example")
    found = check_spf(HOME, ask())
    assert (found.verdict, words in said(found)) == (verdict, True), said(found)


def test_two_spf_records_are_none(zone: Zone, ask: Ask) -> None:
    zone.txt(HOME, "v=spf1 -all", "v=spf1 a -all")
    found = check_spf(HOME, ask())
    assert (found.verdict, len(found.texts)) == (Verdict.FAIL, 2)


def chain(zone: Zone, includes: int) -> None:
    """One look-up a record, each but the last including the next."""
    for number in range(includes):
        name = HOME if not number else f"i{number}.example"
        zone.txt(name, f"v=spf1 include:i{number + 1}.example -all")
    zone.txt(f"i{includes}.example", "v=spf1 ip4:192.0.2.1 -all")


@pytest.mark.parametrize(("includes", "verdict"), [(10, Verdict.PASS), (11, Verdict.FAIL)])
def test_ten_look_ups_are_right_and_eleven_are_too_many(
    zone: Zone, ask: Ask, includes: int, verdict: Verdict
) -> None:
    chain(zone, includes)
    found = check_spf(HOME, ask())
    assert (found.verdict, found.facts["look_ups"]) == (verdict, f"{includes} of 10")


def test_a_repeated_include_counts_each_time_and_a_tree_of_them_ends(zone: Zone, ask: Ask) -> None:
    for number in range(30):
        below = " ".join(f"include:t{number + 1}.example" for _ in range(3))
        zone.txt(f"t{number}.example", f"v=spf1 {below} -all")
    zone.txt(HOME, "v=spf1 include:t0.example -all")
    found = check_spf(HOME, ask())
    assert found.verdict is Verdict.FAIL
    assert "at least" in said(found)
    assert sum(zone.asked.values()) < 30


@pytest.mark.parametrize("how", ["include:", "redirect="])
def test_a_circle_of_records_is_told_and_left(zone: Zone, ask: Ask, how: str) -> None:
    zone.txt(HOME, f"v=spf1 {how}a.example")
    zone.txt("a.example", f"v=spf1 {how}b.example")
    zone.txt("b.example", f"v=spf1 {how}A.example")
    found = check_spf(HOME, ask())
    assert found.verdict is Verdict.FAIL
    assert "mail.example > a.example > b.example > a.example" in said(found)


@pytest.mark.parametrize(("voids", "verdict"), [(2, Verdict.WARN), (3, Verdict.FAIL)])
def test_two_look_ups_may_find_nothing_and_three_may_not(
    zone: Zone, ask: Ask, voids: int, verdict: Verdict
) -> None:
    zone.txt(HOME, "v=spf1 " + " ".join(f"a:v{each}.example" for each in range(voids)) + " -all")
    found = check_spf(HOME, ask())
    assert (found.verdict, found.facts["void"]) == (verdict, f"{voids} of 2")


def test_more_than_ten_mail_exchanges_are_too_many(zone: Zone, ask: Ask) -> None:
    zone.txt(HOME, "v=spf1 mx -all")
    zone.mx(HOME, *(f"m{each}.mail.example" for each in range(11)))
    assert check_spf(HOME, ask()).verdict is Verdict.FAIL


# --- failures to look up: unknown, whatever it is that failed


@pytest.mark.parametrize("trouble", ["SERVFAIL", "silence"])
@pytest.mark.parametrize("where", [HOME, "inc.example", "host.example"])
def test_a_failed_look_up_makes_spf_unknown(zone: Zone, ask: Ask, trouble: str, where: str) -> None:
    zone.txt(HOME, "v=spf1 include:inc.example a:host.example -all")
    zone.txt("inc.example", "v=spf1 -all")
    zone.a("host.example")
    assert check_spf(HOME, ask()).verdict is Verdict.PASS
    fail(zone, where, trouble)
    found = check_spf(HOME, ask())
    assert found.verdict is Verdict.UNKNOWN
    assert f"{where} could not be looked up" in said(found)


@pytest.mark.parametrize("trouble", ["SERVFAIL", "silence"])
@pytest.mark.parametrize("where", ["_dmarc.a.b.example", "_dmarc.b.example", "_dmarc.example"])
def test_a_failed_look_up_anywhere_on_the_walk_makes_dmarc_unknown(
    zone: Zone, ask: Ask, trouble: str, where: str
) -> None:
    zone.txt("_dmarc.b.example", f"v=DMARC1; p=reject{RUA}")
    assert check_dmarc("a.b.example", ask()).verdict is Verdict.PASS
    fail(zone, where, trouble)
    found = check_dmarc("a.b.example", ask())
    assert found.verdict is Verdict.UNKNOWN
    assert f"{where} could not be looked up" in said(found)


@pytest.mark.parametrize("trouble", ["SERVFAIL", "silence"])
def test_a_failed_look_up_makes_a_key_and_what_rests_on_it_unknown(
    zone: Zone, ask: Ask, trouble: str
) -> None:
    fail(zone, f"s1._domainkey.{HOME}", trouble)
    found = {each.kind: each for each in check(HOME, Sending((HOME,), ("s1",)), ask())}
    assert found[Kind.DKIM].verdict is Verdict.UNKNOWN
    assert found[Kind.SPF].verdict is Verdict.FAIL
    assert found[Kind.ALIGNMENT].verdict is Verdict.UNKNOWN


def test_what_is_proven_wrong_fails_beside_a_failed_look_up(zone: Zone, ask: Ask) -> None:
    zone.txt(HOME, "v=spf1 include:inc.example +all")
    zone.codes["inc.example"] = "SERVFAIL"
    found = check_spf(HOME, ask())
    assert found.verdict is Verdict.FAIL
    assert "could not be looked up" in said(found)


def fail(zone: Zone, name: str, trouble: str) -> None:
    if trouble == "silence":
        zone.silent.add(name)
    else:
        zone.codes[name] = trouble


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


# --- DMARC


@pytest.mark.parametrize(
    ("record", "verdict", "words"),
    [
        (f"v=DMARC1; p=reject{RUA}", Verdict.PASS, ""),
        (f"V = DMARC1 ;p=Quarantine; np=reject; psd=n{RUA}", Verdict.PASS, ""),
        (f"v=DMARC1; p=none{RUA}", Verdict.WARN, "nothing is done"),
        (f"v=DMARC1; p=reject; t=y{RUA}", Verdict.WARN, "one step less"),
        (f"v=DMARC1; p=reject; pct=50{RUA}", Verdict.WARN, "pct was removed by RFC 9989"),
        (f"v=DMARC1; p=reject; rf=afrf{RUA}", Verdict.WARN, "rf was removed by RFC 9989"),
        (f"v=DMARC1; p=reject; ri=86400{RUA}", Verdict.WARN, "ri was removed by RFC 9989"),
        (f"v=DMARC1; p=reject; mood=good{RUA}", Verdict.WARN, "nobody knows the tag mood"),
        (f"v=DMARC1; p=reject; np=never{RUA}", Verdict.WARN, "counts as absent"),
        (f"v=DMARC1; p=reject; psd=y{RUA}", Verdict.WARN, "public suffix"),
        ("v=DMARC1; p=reject", Verdict.WARN, "no aggregate reports"),
        ("v=DMARC1; p=reject; rua=https://x.example/r", Verdict.WARN, "cannot be mailed"),
        ("v=DMARC1; p=reject; rua=mailto:a@b.example!10m", Verdict.WARN, "size limit"),
        (f"v=DMARC1; rua=mailto:a@b.example", Verdict.WARN, "p is missing"),  # noqa: F541
        (f"v=DMARC1; p=rejct{RUA}", Verdict.WARN, "act as with p=none"),
        ("v=DMARC1; p=rejct", Verdict.FAIL, "apply no DMARC"),
        ("v=DMARC1", Verdict.FAIL, "apply no DMARC"),
        (f"v=DMARC1; p=reject; p=none{RUA}", Verdict.FAIL, "twice"),
        ("v=dmarc1; p=reject", Verdict.FAIL, "no DMARC record"),
        ("p=reject; v=DMARC1", Verdict.FAIL, "no DMARC record"),
        ("v=spf1 -all", Verdict.FAIL, "no DMARC record"),
    ],
)
def test_a_policy_is_judged_by_rfc_9989(
    zone: Zone, ask: Ask, record: str, verdict: Verdict, words: str
) -> None:
    zone.txt(f"_dmarc.{HOME}", record)
    found = check_dmarc(HOME, ask())
    assert (found.verdict, words in said(found)) == (verdict, True), said(found)


def test_where_reports_go_and_what_is_asked_for_stand_beside_the_policy(
    zone: Zone, ask: Ask
) -> None:
    rua = "rua=mailto:a@b.example, mailto:c@d.example"
    zone.txt(f"_dmarc.{HOME}", f"v=DMARC1; p=reject; adkim=s; {rua}")
    assert check_dmarc(HOME, ask()).facts == {
        "policy": "reject", "policy_from": HOME, "adkim": "s", "aspf": "r",
        "rua": "a@b.example c@d.example",
    }  # fmt: skip


def test_two_policies_are_none(zone: Zone, ask: Ask) -> None:
    zone.txt(f"_dmarc.{HOME}", f"v=DMARC1; p=reject{RUA}", "v=DMARC1; p=none", "something else")
    found = check_dmarc(HOME, ask())
    assert (found.verdict, len(found.texts)) == (Verdict.FAIL, 2)
    assert "has 2 DMARC records; receivers discard all" in said(found)


@pytest.mark.parametrize(
    ("records", "source", "policy"),
    [
        ({"b.example": "p=reject"}, "b.example", "reject"),
        ({"b.example": "p=reject; sp=none"}, "b.example", "none"),
        ({"a.b.example": "p=quarantine", "b.example": "p=reject"}, "b.example", "reject"),
        (
            {"a.b.example": "p=quarantine; psd=n", "b.example": "p=reject"},
            "a.b.example",
            "quarantine",
        ),
        ({"a.b.example": "p=none", "b.example": "p=reject; psd=y"}, "a.b.example", "none"),
        ({"b.example": "p=reject; psd=y"}, "b.example", "reject"),
        ({"example": "p=reject; psd=y", "b.example": "p=none"}, "b.example", "none"),
        ({"x.a.b.example": "p=none", "b.example": "p=reject"}, "x.a.b.example", "none"),
    ],
)
def test_the_tree_walk_finds_whose_policy_counts(
    zone: Zone, ask: Ask, records: dict[str, str], source: str, policy: str
) -> None:
    for name, tags in records.items():
        zone.txt(f"_dmarc.{name}", f"v=DMARC1; {tags}{RUA}")
    found = check_dmarc("x.a.b.example", ask())
    assert (found.facts["policy_from"], found.facts["policy"]) == (source, policy)
    assert found.name == f"_dmarc.{source}"


def test_a_walk_asks_eight_times_however_deep_the_name() -> None:
    assert above("a.b.c.example") == ["b.c.example", "c.example", "example"]
    deep = ".".join("abcdefghijkl") + ".example"
    assert above(deep)[0].count(".") == 6
    assert len(above(deep)) == 7
    assert above("a.b.c.d.e.f.g.example")[0] == "b.c.d.e.f.g.example"


def test_a_second_parser_reads_policies_as_we_do(zone: Zone, ask: Ask) -> None:
    for tags in (
        "p=reject", "p=none; sp=reject; np=quarantine", "p=quarantine; t=y; adkim=s",
        "p=reject; pct=20; rf=afrf; ri=60", "p=reject; psd=u; aspf=r", "P=REJECT",
    ):  # fmt: skip
        zone.txt(f"_dmarc.{HOME}", f"v=DMARC1; {tags}")
        ours, theirs = check_dmarc(HOME, ask()), parse_dmarc_record(f"v=DMARC1; {tags}", HOME)
        assert ours.facts["policy"] == theirs["tags"]["p"]["value"]
        assert ours.facts["adkim"] == theirs["tags"]["adkim"]["value"]
        for name in REMOVED:
            told = f"Support for the {name} tag was removed in RFC 9989" in theirs["warnings"]
            assert (f"{name} was removed by RFC 9989" in said(ours)) == told


_TAG = some.tuples(
    some.sampled_from(["p", "sp", "np", "t", "psd", "adkim", "aspf", "pct", "ri", "fo", "zz"]),
    some.sampled_from(["none", "quarantine", "reject", "y", "n", "r", "s", "0", "1", "100"]),
)


@given(some.lists(_TAG, max_size=5))
def test_what_a_second_parser_takes_without_a_word_we_read_the_same(
    tags: list[tuple[str, str]],
) -> None:
    record = "; ".join(["v=DMARC1", *(f"{name}={value}" for name, value in tags)])
    found = check_dmarc(HOME, _Fixed({f"_dmarc.{HOME}": record}))
    try:
        theirs = parse_dmarc_record(record, HOME)
    except DMARCError:
        assert found.verdict in {Verdict.WARN, Verdict.FAIL}
        return
    assert "twice" not in said(found)
    assert found.facts["policy"] == theirs["tags"]["p"]["value"]


class _Fixed:
    """Answers of one's own: what arrives through a resolver is tried above."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def ask(self, name: str, kind: str) -> Answer:
        text = self.texts.get(name) if kind == "TXT" else None
        return Answer(Found.ABSENT) if text is None else Answer(Found.PRESENT, (text,), 60, "it")


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
    dns = _Fixed(
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
