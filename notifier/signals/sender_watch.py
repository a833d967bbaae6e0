"""The sweep that checks the sender domains: one that is due at a time, never in a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from notifier.ports.dns import Dns
from notifier.settings import Settings
from notifier.signals.dns import Resolver
from notifier.signals.sender_domains import Sending, check, domain_of, is_reserved, not_asked
from notifier.signals.sender_findings import Finding, Verdict, worst
from notifier.store import sender_domains as store
from notifier.store.database import Database, PooledConnection
from notifier.store.sender_domains import Observed

EVERY_S: Final = 3600.0
"""How often a domain is checked by itself."""


@dataclass(frozen=True, slots=True)
class SenderWatch:
    """Checks the domains of `sending` with a fresh resolver each time.

    `asks_all`: also of domains that public DNS does not have, because a resolver was named.
    """

    sending: Sending
    resolver: Callable[[], Dns] = Resolver
    asks_all: bool = False

    def look(self, domain: str) -> tuple[Finding, ...]:
        """Ask now, and keep nothing."""
        if is_reserved(domain) and not self.asks_all:
            return not_asked(domain)
        return check(domain, self.sending, self.resolver())

    def run_due(self, connection: PooledConnection) -> int:
        """Check one domain that is due; how many were."""
        domains = self.sending.domains
        store.register(connection, domains)
        domain = store.claim(connection, domains, every_s=EVERY_S)
        if domain is None:
            return 0
        store.keep(connection, domain, [_observed(each) for each in self.look(domain)])
        return 1


def sender_watch_of(settings: Settings) -> SenderWatch:
    """Over the domain of the From address, with the selectors and the resolver that are set."""
    address, server = settings.email_from, settings.dns_resolver
    domains = (domain_of(address),) if address else ()
    own_envelope = "smtp" in settings.email_providers
    sending = Sending(domains, settings.dkim_selectors, own_envelope=own_envelope)
    if server is None:
        return SenderWatch(sending)
    return SenderWatch(sending, lambda: Resolver([(server.host, server.port)]), asks_all=True)


def probe(watch: SenderWatch) -> Iterator[tuple[str, bool, str]]:
    """Each domain looked up now: its name, whether nothing fails, and what was found, in a line."""
    for domain in watch.sending.domains:
        found = watch.look(domain)
        is_well = worst(each.verdict for each in found) is not Verdict.FAIL
        yield domain, is_well, "; ".join(each.summary for each in found)


def queue_check(database: Database, domain: str, by: str) -> bool:
    """Have a domain checked at the next turn; False where nobody knows it."""
    with database.connection() as connection:
        return store.queue(connection, domain, by)


def _observed(each: Finding) -> Observed:
    return Observed(
        each.kind, each.selector, each.name, each.verdict, each.texts, each.reasons, each.facts,
        each.resolver, each.ttl_s,
    )  # fmt: skip
