"""What the pages need from outside; the composition root fills it in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from notifier.accounts.oidc_issuer import Issuer
from notifier.accounts.sessions import Ways
from notifier.flow.exports import Exporter
from notifier.flow.operator_acts import OperatorActs
from notifier.store.database import Database
from notifier.store.reads.counted_hours import CountedHours
from notifier.web.people.downloads import Downloads


@dataclass(frozen=True, slots=True)
class PeopleServices:
    """`fingerprint_keys`: the first makes, all of them find. `now`: the database clock's time.

    `link_ticket` takes a ticket, a notice and who links them; False where there is no such
    notice. Without it no page offers to link, and without `acts` none offers to act.

    `issuer` is where people sign in beside or in place of local accounts. `count_sign_in` takes
    the way (password, link, oidc), what came of it (done, refused), and whether a local account
    was used although there is an issuer.

    `hours`: what was counted, kept in memory for this process's `database`. `downloads`: the
    files that this process is sending.

    `public_url` has no slash at its end. `secure` says whether people reach us over https.
    """

    database: Database
    fingerprint_keys: tuple[bytes, ...]
    public_url: str
    now: Callable[[], datetime]
    version: str
    app_name: str = "Reset notices"
    secure: bool = False
    link_ticket: Callable[[str, UUID, str], bool] | None = None
    acts: OperatorActs | None = None
    exporter: Exporter | None = None
    issuer: Issuer | None = None
    local_accounts: bool = True
    count_sign_in: Callable[[str, str, bool], None] = lambda *_: None
    hours: CountedHours = field(default_factory=CountedHours)
    downloads: Downloads = field(default_factory=Downloads)

    @property
    def ways(self) -> Ways:
        """Whose sessions count."""
        return Ways(self.local_accounts, self.issuer.client.issuer if self.issuer else None)
