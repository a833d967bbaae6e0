"""Judges the SPF record of a domain (RFC 7208), following what it includes.

Counts as a receiver does: ten terms that look something up, two look-ups that find nothing.
What depends on the message (macros) is counted and not looked up.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
)

MOST_LOOK_UPS: Final = 10
MOST_VOIDS: Final = 2
MOST_EXCHANGES: Final = 10
LONGEST_BYTES: Final = 450
"""Above it an answer may not fit a datagram (RFC 7208, 3.4)."""
COUNT_UP_TO: Final = 20
"""A receiver has given up long before; here counting ends."""

_TERM: Final = re.compile(r"([+\-~?]?)([A-Za-z][A-Za-z0-9_.\-]*)(?:([:=/])(.*))?", re.DOTALL)
_NAME: Final = re.compile(r"(?=.{1,253}\Z)(?:[A-Za-z0-9_-]{1,63}\.)+[A-Za-z0-9-]{1,63}\.?")
_PREFIX: Final = re.compile(r"(/(0|[1-9]\d{0,2}))?(//(0|[1-9]\d{0,2}))?\Z")


@dataclass
class _Walk:
    """What a receiver would have counted so far."""

    dns: Dns
    look_ups: int = 0
    voids: int = 0
    remarks: list[Remark] = field(default_factory=list)

    def say(self, verdict: Verdict, words: str) -> None:
        self.remarks.append(Remark(verdict, words))

    def ask(self, name: str, *kinds: str) -> Answer:
        """The first kind that is present; counts a void look-up where none is."""
        answer = Answer(Found.ABSENT)
        for kind in kinds:
            answer = self.dns.ask(name, kind)
            if answer.found is not Found.ABSENT:
                break
        if failed(answer):
            self.remarks.append(not_looked_up(name, answer))
        self.voids += answer.found is Found.ABSENT
        return answer


def check_spf(domain: str, dns: Dns) -> Finding:
    """The record of `domain` and what it leads to."""
    answer, walk = dns.ask(domain, "TXT"), _Walk(dns)
    records = spf_records(answer)
    if failed(answer):
        walk.remarks.append(not_looked_up(domain, answer))
    elif not records:
        walk.say(Verdict.FAIL, "there is no SPF record")
    elif len(records) > 1:
        walk.say(Verdict.FAIL, f"there are {len(records)} SPF records; receivers use none of them")
    else:
        _read(walk, records[0], (domain.lower(),))
        _judge_counts(walk)
    facts = {"look_ups": f"{walk.look_ups} of {MOST_LOOK_UPS}", "void": f"{walk.voids} of 2"}
    return finding(
        Kind.SPF, domain, answer, walk.remarks, facts if len(records) == 1 else {}, texts=records
    )


def spf_records(answer: Answer) -> list[str]:
    """Those with exactly this version (RFC 7208, 4.5)."""
    return [text for text in answer.texts if re.match(r"v=spf1(?: |\Z)", text, re.IGNORECASE)]


def _judge_counts(walk: _Walk) -> None:
    if walk.look_ups > MOST_LOOK_UPS:
        least = "at least " if walk.look_ups > COUNT_UP_TO else ""
        walk.say(
            Verdict.FAIL,
            f"it takes {least}{walk.look_ups} look-ups, and receivers stop at {MOST_LOOK_UPS}",
        )
    if walk.voids > MOST_VOIDS:
        walk.say(
            Verdict.FAIL,
            f"{walk.voids} look-ups find nothing, and receivers stop at {MOST_VOIDS}",
        )


def _read(walk: _Walk, text: str, path: tuple[str, ...]) -> None:
    """One record, the first of `path` being the sender's and the last this one's domain."""
    if len(text) > LONGEST_BYTES:
        walk.say(
            Verdict.WARN, f"the record of {path[-1]} has {len(text)} bytes: above 450 is risky"
        )
    redirect, names, ended = None, set[str](), False
    for term in filter(None, text.split(" ")[1:]):
        found = _TERM.fullmatch(term)
        if not found:
            walk.say(Verdict.FAIL, f'"{quoted(term)}" is no SPF term')
            continue
        qualifier, name, mark, value = (each or "" for each in found.groups())
        name = name.lower()
        if mark == "=":
            if qualifier or (name in {"redirect", "exp"} and name in names):
                walk.say(Verdict.FAIL, f'"{quoted(term)}" stands where it may not')
            names.add(name)
            redirect = value if name == "redirect" else redirect
        elif not ended:
            ended = name == "all"
            _mechanism(walk, _Term(term, qualifier, name, mark, value), path)
    if redirect is not None and not ended:
        _follow(walk, redirect, path, "redirect")
    elif not ended and len(path) == 1:
        walk.say(Verdict.WARN, "nothing is said about other senders: the record has no all")


@dataclass(frozen=True, slots=True)
class _Term:
    text: str
    qualifier: str
    name: str
    mark: str
    value: str

    @property
    def target(self) -> str:
        """The domain that it names, without the prefix lengths; empty for the record's own."""
        if self.mark != ":":
            return ""
        head, slash, tail = self.value.partition("/")
        return head if _PREFIX.match(slash + tail) else self.value


def _mechanism(walk: _Walk, term: _Term, path: tuple[str, ...]) -> None:
    judge = _MECHANISMS.get(term.name)
    if judge is None:
        walk.say(Verdict.FAIL, f'"{quoted(term.text)}" is no mechanism of SPF')
    else:
        judge(walk, term, path)


def _all(walk: _Walk, term: _Term, path: tuple[str, ...]) -> None:
    if term.mark:
        walk.say(Verdict.FAIL, f'"{quoted(term.text)}": all takes no value')
    elif term.qualifier in {"", "+"}:
        walk.say(Verdict.FAIL, f"the record of {path[-1]} lets everybody send: +all")
    elif term.qualifier == "?" and len(path) == 1:
        walk.say(Verdict.WARN, "?all says nothing about other senders")


def _network(walk: _Walk, term: _Term, path: tuple[str, ...]) -> None:
    kind = ipaddress.IPv4Network if term.name == "ip4" else ipaddress.IPv6Network
    try:
        kind(term.value, strict=False)
        is_one = term.mark == ":" and not re.search(r"/0\d", term.value)
    except ValueError:
        is_one = False
    if not is_one:
        walk.say(Verdict.FAIL, f'"{quoted(term.text)}" in {path[-1]} is no network')


def _host(walk: _Walk, term: _Term, path: tuple[str, ...]) -> None:
    """a, mx, exists."""
    walk.look_ups += 1
    needs_name = term.name == "exists"
    name = term.target or ("" if needs_name or term.mark == ":" else path[-1])
    if "%" in name:
        return
    if not _NAME.fullmatch(name):
        walk.say(Verdict.FAIL, f'"{quoted(term.text)}" in {path[-1]} names no domain')
        return
    kinds = {"a": ("A", "AAAA"), "mx": ("MX",), "exists": ("A",)}[term.name]
    answer = walk.ask(name, *kinds)
    if answer.found is Found.ABSENT:
        walk.say(Verdict.WARN, f'"{quoted(term.text)}" in {path[-1]} finds nothing')
    if term.name == "mx" and len(answer.texts) > MOST_EXCHANGES:
        walk.say(Verdict.FAIL, f"{quoted(name)} has more than {MOST_EXCHANGES} mail exchanges")


def _pointer(walk: _Walk, _: _Term, path: tuple[str, ...]) -> None:
    walk.look_ups += 1
    walk.say(Verdict.WARN, f"ptr in {path[-1]} must not be used any more (RFC 7208, 5.5)")


def _include(walk: _Walk, term: _Term, path: tuple[str, ...]) -> None:
    _follow(walk, term.value if term.mark == ":" else "", path, "include")


def _follow(walk: _Walk, name: str, path: tuple[str, ...], how: str) -> None:
    """Go on with the record of another domain."""
    walk.look_ups += 1
    name = name.lower().rstrip(".")
    if "%" in name or walk.look_ups > COUNT_UP_TO:
        return
    if not _NAME.fullmatch(name):
        walk.say(Verdict.FAIL, f'{how} in {path[-1]} names no domain: "{quoted(name)}"')
        return
    if name in path:
        walk.say(Verdict.FAIL, f"{how} goes round in a circle: {' > '.join((*path, name))}")
        return
    answer = walk.ask(name, "TXT")
    records = spf_records(answer)
    if len(records) == 1:
        _read(walk, records[0], (*path, name))
    elif not failed(answer):
        many = "several SPF records" if records else "no SPF record"
        walk.say(Verdict.FAIL, f"{how} leads to {name}, which has {many}")


_MECHANISMS: Final[Mapping[str, Callable[[_Walk, _Term, tuple[str, ...]], None]]] = {
    "all": _all, "include": _include, "a": _host, "mx": _host, "exists": _host,
    "ptr": _pointer, "ip4": _network, "ip6": _network,
}  # fmt: skip
