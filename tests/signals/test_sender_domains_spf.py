"""Verdicts on SPF, as a real server on loopback gives the records."""

from __future__ import annotations

import pytest

from notifier.signals.sender_domains_spf import check_spf
from notifier.signals.sender_findings import Verdict
from tests.dns_server import Zone
from tests.signals.asking_dns import HOME, Ask, fail, said


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


def test_what_is_proven_wrong_fails_beside_a_failed_look_up(zone: Zone, ask: Ask) -> None:
    zone.txt(HOME, "v=spf1 include:inc.example +all")
    zone.codes["inc.example"] = "SERVFAIL"
    found = check_spf(HOME, ask())
    assert found.verdict is Verdict.FAIL
    assert "could not be looked up" in said(found)
