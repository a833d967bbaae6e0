"""Verdicts on DMARC by RFC 9989, as a real server on loopback gives the records."""

from __future__ import annotations

import pytest
from checkdmarc.dmarc import DMARCError, parse_dmarc_record
from hypothesis import example, given
from hypothesis import strategies as some

from notifier.signals.sender_domains_dmarc import REMOVED, above, check_dmarc
from notifier.signals.sender_findings import Verdict
from tests.dns_server import Zone
from tests.signals.asking_dns import HOME, Ask, Fixed, fail, said

RUA = "; rua=mailto:dmarc@mail.example"


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
@example([("zz", "none"), ("zz", "none")])
def test_what_a_second_parser_takes_without_a_word_we_read_the_same(
    tags: list[tuple[str, str]],
) -> None:
    record = "; ".join(["v=DMARC1", *(f"{name}={value}" for name, value in tags)])
    found = check_dmarc(HOME, Fixed({f"_dmarc.{HOME}": record}))
    try:
        theirs = parse_dmarc_record(record, HOME)
    except DMARCError:
        assert found.verdict in {Verdict.WARN, Verdict.FAIL}
        return
    # It passes over a tag that nobody knows also where that tag stands twice; we do not.
    unknown_twice = [name for name, _ in tags].count("zz") > 1
    assert ("twice" in said(found)) == unknown_twice
    if not unknown_twice:
        assert found.facts["policy"] == theirs["tags"]["p"]["value"]


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
