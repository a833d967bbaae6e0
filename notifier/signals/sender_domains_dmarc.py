"""Judges the DMARC policy of a domain (RFC 9989): its record, or the one a tree walk finds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from notifier.ports.dns import Answer, Dns
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

REMOVED: Final = ("pct", "rf", "ri")
"""Tags of RFC 7489 that RFC 9989 took away."""
KNOWN: Final = ("v", "p", "sp", "np", "t", "psd", "adkim", "aspf", "rua", "ruf", "fo")
POLICIES: Final = ("none", "quarantine", "reject")
MOST_QUERIES: Final = 8
_CHOICES: Final = {
    "sp": POLICIES, "np": POLICIES, "t": ("y", "n"), "psd": ("y", "n", "u"),
    "adkim": ("r", "s"), "aspf": ("r", "s"),
}  # fmt: skip
_VERSION: Final = re.compile(r"[vV][ \t]*=[ \t]*DMARC1[ \t]*(?:;|\Z)")
_MAILTO: Final = re.compile(r"mailto:([^\s@!,;]+@[A-Za-z0-9.-]+)(![0-9]+[kmgt]?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the tree something was looked for, and the DMARC records there."""

    domain: str
    answer: Answer
    records: tuple[str, ...]

    @property
    def valid(self) -> str | None:
        """The record, if there is one and no second: several are discarded (RFC 9989, 4.10)."""
        return self.records[0] if len(self.records) == 1 else None

    @property
    def psd(self) -> str:
        """What it says about being a public suffix."""
        return dict(_lower(tags_of(self.valid or "")[0])).get("psd", "u").lower()


def check_dmarc(domain: str, dns: Dns) -> Finding:
    """The policy that receivers apply to mail from `domain`."""
    own = look(domain, dns)
    places = [own]
    if not failed(own.answer) and own.valid is None:
        places += walk(domain, dns)
    remarks, facts = _several(places), dict[str, str]()
    source = policy_place(domain, places)
    broken = next((each for each in places if failed(each.answer)), None)
    shown = source or own
    if broken is not None:
        remarks.append(not_looked_up(f"_dmarc.{broken.domain}", broken.answer))
        shown = broken if source is None else source
    elif source is None:
        remarks.append(Remark(Verdict.FAIL, "there is no DMARC record here or above"))
    if source is not None and source.valid is not None:
        facts["policy_from"] = source.domain
        remarks += _policy(domain, source, facts)
    texts = shown.records or own.records
    return finding(Kind.DMARC, f"_dmarc.{shown.domain}", shown.answer, remarks, facts, texts=texts)


def look(domain: str, dns: Dns) -> Place:
    """The records of one name; other texts there are discarded."""
    answer = dns.ask(f"_dmarc.{domain}", "TXT")
    return Place(domain, answer, tuple(each for each in answer.texts if _VERSION.match(each)))


def above(domain: str) -> list[str]:
    """The names that a tree walk asks after `domain` itself, the longest first."""
    labels = domain.split(".")
    first = max(1, len(labels) - (MOST_QUERIES - 1))
    return [".".join(labels[at:]) for at in range(first, len(labels))]


def walk(domain: str, dns: Dns) -> list[Place]:
    """Up the tree until a record says where it ends, or a look-up fails."""
    found = []
    for name in above(domain):
        place = look(name, dns)
        found.append(place)
        if failed(place.answer) or place.psd in {"y", "n"}:
            break
    return found


def policy_place(domain: str, places: list[Place]) -> Place | None:
    """Whose record applies: the domain's own, else its organisation's, else its suffix's.

    None where there is none, or a failed look-up leaves it open.
    """
    if places[0].valid is not None:
        return places[0]
    if any(failed(each.answer) for each in places):
        return None
    held = [each for each in places[1:] if each.valid is not None]
    if not held:
        return None
    last = held[-1]
    if last.psd == "y":
        below = _one_below(domain, last.domain)
        return next((each for each in held if each.domain == below), last)
    return last


def _one_below(domain: str, suffix: str) -> str:
    """The organisation's domain under a public suffix (RFC 9989, 4.10.2)."""
    kept = suffix.count(".") + 2
    return ".".join(domain.split(".")[-kept:])


def _several(places: list[Place]) -> list[Remark]:
    return [
        Remark(
            Verdict.FAIL,
            f"_dmarc.{each.domain} has {len(each.records)} DMARC records; receivers discard all",
        )
        for each in places
        if len(each.records) > 1
    ]


def _policy(domain: str, source: Place, facts: dict[str, str]) -> list[Remark]:
    """What the record asks for. A value that is none of its kind counts as absent."""
    pairs, odd = tags_of(source.valid or "")
    pairs = _lower(pairs)
    names, tags = [name for name, _ in pairs], dict(pairs)
    if len(set(names)) < len(names):
        return [Remark(Verdict.FAIL, "a tag stands there twice, so the record is not valid")]
    said = [Remark(Verdict.WARN, f'"{quoted(each)}" is no tag') for each in odd]
    said += _removed(names)
    said += _choices(tags)
    said += _reports(tags, facts)
    said += _strength(domain, source.domain, tags, facts)
    return said


def _lower(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in pairs]


def _removed(names: list[str]) -> list[Remark]:
    said = [
        Remark(Verdict.WARN, f"{name} was removed by RFC 9989: receivers ignore it")
        for name in REMOVED
        if name in names
    ]
    unknown = [name for name in names if name not in {*KNOWN, *REMOVED}]
    return said + [
        Remark(Verdict.WARN, f"nobody knows the tag {quoted(name)}; receivers ignore it")
        for name in unknown
    ]


def _choices(tags: dict[str, str]) -> list[Remark]:
    said = []
    for name, permitted in _CHOICES.items():
        if name in tags and tags[name].lower() not in permitted:
            words = f"{name}={quoted(tags[name])} is none of {', '.join(permitted)}"
            said.append(Remark(Verdict.WARN, f"{words}; it counts as absent"))
            del tags[name]
    return said


def _reports(tags: dict[str, str], facts: dict[str, str]) -> list[Remark]:
    """Where aggregate reports go."""
    said, addresses = [], []
    for uri in filter(None, (each.strip() for each in tags.get("rua", "").split(","))):
        found = _MAILTO.fullmatch(uri)
        if not found:
            said.append(Remark(Verdict.WARN, f'reports cannot be mailed to "{quoted(uri)}"'))
            continue
        addresses.append(found[1])
        if found[2]:
            said.append(Remark(Verdict.WARN, f"{quoted(found[2])} is a size limit; it is ignored"))
    if not addresses:
        said.append(Remark(Verdict.WARN, "no aggregate reports are asked for: rua has no address"))
    facts["rua"] = " ".join(addresses) or "none"
    return said


def _strength(
    domain: str, source: str, tags: dict[str, str], facts: dict[str, str]
) -> list[Remark]:
    policy = tags.get("p", "").lower()
    if policy not in POLICIES:
        facts["policy"] = "none"
        what = f"p={quoted(tags['p'])} is no policy" if "p" in tags else "p is missing"
        if facts["rua"] == "none":
            return [Remark(Verdict.FAIL, f"{what}, so receivers apply no DMARC")]
        return [Remark(Verdict.WARN, f"{what}; receivers act as with p=none")]
    if domain != source:
        policy = tags.get("sp", policy).lower()
    facts |= {"policy": policy, "adkim": tags.get("adkim", "r"), "aspf": tags.get("aspf", "r")}
    said = []
    if policy == "none":
        said.append(Remark(Verdict.WARN, "the policy is none: nothing is done about forgeries"))
    if tags.get("t", "n").lower() == "y":
        said.append(Remark(Verdict.WARN, "t=y: receivers apply one step less than the policy"))
    if tags.get("psd", "u").lower() == "y" and domain == source:
        said.append(Remark(Verdict.WARN, "psd=y: the domain says that it is a public suffix"))
    return said
