"""Judges what DNS says about the domains that we send from. Pure but for the asking.

What a domain publishes is one kind of evidence, what became of messages another: nothing here
looks at a delivery, and no delivery is decided by what is found here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from notifier.ports.dns import Answer, Dns, Found
from notifier.signals.sender_domains_dkim import check_dkim, no_selector
from notifier.signals.sender_domains_dmarc import check_dmarc
from notifier.signals.sender_domains_spf import check_spf
from notifier.signals.sender_findings import Finding, Kind, Remark, Verdict, finding

RESERVED: Final = ("test", "example", "invalid", "localhost", "local", "internal", "onion")
"""Names that public DNS does not have (RFC 2606, 6761, 6762, 7686)."""
USABLE: Final = (Verdict.PASS, Verdict.WARN)


@dataclass(frozen=True, slots=True)
class Sending:
    """How we send: from which domains, with which selectors.

    `own_envelope`: the envelope's sender is our own address, as over SMTP; providers with an
    HTTP API put in one of theirs.
    """

    domains: tuple[str, ...]
    selectors: tuple[str, ...] = ()
    own_envelope: bool = True


def domain_of(address: str) -> str:
    """The domain of an email address, as DNS is asked for it."""
    return address.rpartition("@")[2].lower().rstrip(".")


def is_reserved(domain: str) -> bool:
    """Whether public DNS cannot know this domain: to ask would tell strangers for nothing."""
    return domain.rpartition(".")[2] in RESERVED or "." not in domain


def check(domain: str, sending: Sending, dns: Dns) -> tuple[Finding, ...]:
    """Everything about one domain."""
    spf, dmarc = check_spf(domain, dns), check_dmarc(domain, dns)
    keys = tuple(check_dkim(domain, each, dns) for each in sending.selectors)
    return (spf, *(keys or (no_selector(domain),)), dmarc, alignment(domain, sending, spf, keys))


def not_asked(domain: str) -> tuple[Finding, ...]:
    """For a domain that public DNS does not have."""
    why = Remark(Verdict.UNKNOWN, "the domain is reserved, so nobody was asked about it")
    nothing = Answer(Found.FAILED)
    return tuple(finding(kind, domain, nothing, [why], {}) for kind in Kind)


def alignment(domain: str, sending: Sending, spf: Finding, keys: Sequence[Finding]) -> Finding:
    """Whether mail from `domain` can pass DMARC: a signature or an envelope of the same domain."""
    signed, enveloped = _by_key(domain, keys), _by_envelope(domain, sending, spf)
    ways = [*signed, enveloped]
    good = [each for each in ways if each.verdict is Verdict.PASS]
    if good:
        remarks = [*good, *(Remark(Verdict.PASS, each.words) for each in ways if each not in good)]
        if not any(each in good for each in signed):
            words = "SPF alone is lost where mail is forwarded; a signature is not"
            remarks.append(Remark(Verdict.WARN, words))
    else:
        remarks = ways
        if any(each.verdict is Verdict.UNKNOWN for each in ways):
            remarks = [
                each if each.verdict is Verdict.UNKNOWN else Remark(Verdict.PASS, each.words)
                for each in ways
            ]
    return finding(Kind.ALIGNMENT, domain, _oldest(spf, *keys), remarks, {})


def _by_key(domain: str, keys: Sequence[Finding]) -> list[Remark]:
    said = []
    for key in keys:
        if key.verdict in USABLE:
            words = f"a signature of {key.selector} with d={domain} is aligned"
            said.append(Remark(Verdict.PASS, words))
        else:
            words = f"no signature of {key.selector} counts: its key is {_word(key.verdict)}"
            said.append(Remark(key.verdict, words))
    return said or [Remark(Verdict.UNKNOWN, "no selector is named, so no signature is known")]


def _by_envelope(domain: str, sending: Sending, spf: Finding) -> Remark:
    if not sending.own_envelope:
        words = "the provider's envelope was not asked for, so SPF is not counted"
        return Remark(Verdict.UNKNOWN, words)
    if spf.verdict in USABLE:
        return Remark(Verdict.PASS, f"the envelope's sender is of {domain} too, so SPF is aligned")
    return Remark(spf.verdict, f"SPF does not count: its record is {_word(spf.verdict)}")


def _word(verdict: Verdict) -> str:
    return "not known" if verdict is Verdict.UNKNOWN else "not usable"


def _oldest(*findings: Finding) -> Answer:
    """Which resolver it rests on."""
    resolver = next((each.resolver for each in findings if each.resolver), "")
    return Answer(Found.PRESENT, resolver=resolver)
