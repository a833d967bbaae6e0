"""What a process must tell by itself, because no row can be written of it.

One per trouble: it begins at the first failure, is told once it has lasted, and its end is told to
whoever was told of it. Several processes tell the same trouble each; which they are stands in it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from notifier.clock import steady
from notifier.logs import log
from notifier.ports.paging import Page, Receiver
from notifier.signals.judgements import RuleName
from notifier.signals.paging import WAITS_S, own_page

TRIES_FOR_THE_END: Final = 5


@dataclass
class Outage:
    """One trouble that this process watches for; `where` names the process to people."""

    rule: RuleName
    receivers: Sequence[Receiver]
    base: str
    where: str
    _failing_since: float | None = None
    _told: threading.Event | None = field(default=None, init=False)

    def well(self) -> None:
        """It is not so, or not any more."""
        self._failing_since = None
        if self._told is not None:
            log.warning("alert_over", reason=str(self.rule))
            self._told.set()
            self._told = None

    def failing(self, hold_s: float) -> None:
        """It is so; tell everybody once it has been for `hold_s`."""
        now = steady()
        if self._failing_since is None:
            self._failing_since = now
        if self._told is None and now - self._failing_since >= hold_s:
            self._tell(datetime.now(UTC) - timedelta(seconds=now - self._failing_since))

    def _tell(self, since: datetime) -> None:
        log.error("alert_opened", reason=str(self.rule))
        self._told = ended = threading.Event()
        for receiver in self.receivers:
            threading.Thread(
                target=self._see_through, args=(receiver, since, ended), name="paging", daemon=True
            ).start()

    def _see_through(self, receiver: Receiver, since: datetime, ended: threading.Event) -> None:
        """Tell one receiver of the beginning until it takes it, and then of the end."""
        begun = own_page(self.base, self.rule, since, over=False, where=self.where)
        if not _insist(receiver, begun, ended):
            return
        ended.wait()
        over = own_page(self.base, self.rule, since, over=True, where=self.where)
        _insist(receiver, over, threading.Event(), tries=TRIES_FOR_THE_END)


def _insist(
    receiver: Receiver, page: Page, ended: threading.Event, tries: int | None = None
) -> bool:
    """Try until it is taken, the trouble has ended, or the tries are used up."""
    tried = 0
    while tries is None or tried < tries:
        trouble = receiver.take(page)
        if trouble is None:
            return True
        log.warning("page_not_taken", code=trouble, attempt=tried + 1)
        if ended.wait(WAITS_S[min(tried, len(WAITS_S) - 1)]):
            return False
        tried += 1
    return False
