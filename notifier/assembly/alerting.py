"""The alert path of a process, on connections of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from notifier.flow.policies import PolicyShelf
from notifier.settings import Settings, SettingsInvalid, problem_of
from notifier.signals.apprise_pager import NOT_UNDERSTOOD, AppriseReceiver, receivers_of
from notifier.signals.deadman import Deadman
from notifier.signals.judgements import RuleName
from notifier.signals.judging import Judge
from notifier.signals.outage import Outage
from notifier.signals.paging import Outbox
from notifier.signals.watch import Watch, watch_database
from notifier.sweeps.processes import owner_name


def watch_of(
    settings: Settings, url: str, shelf: PolicyShelf, period_of: Callable[[str], float]
) -> Watch:
    """Sees to it that somebody judges and somebody is told, whatever else stands still."""
    receivers = receivers_of(settings.alert_urls)
    judge = Judge(
        shelf,
        owner_name(),
        period_of,
        receivers=[each.name for each in receivers],
        seals=settings.checkpoint_key is not None,
    )
    database, base = watch_database(url), settings.public_base
    outage = partial(Outage, receivers=receivers, base=base, where=judge.owner)
    return Watch(
        database,
        judge,
        Outbox(database, receivers, base),
        unreachable=outage(RuleName.DATABASE_UNREACHABLE),
        unjudged=outage(RuleName.RULES_NOT_JUDGED),
        deadman=Deadman(settings.deadman_url) if settings.deadman_url else None,
    )


def check_pager(settings: Settings) -> None:
    """Refuse an address that would page nobody; raises `SettingsInvalid` with the first one.

    Apprise is loaded for it where there is an address, which takes a second or more.
    """
    for place, url in enumerate(settings.alert_urls, 1):
        if not AppriseReceiver(url).is_understood():
            wrong = f"cannot be used (address {place}: {NOT_UNDERSTOOD})"
            raise SettingsInvalid([problem_of("alert_urls", wrong)])
