"""Which policy is in force, which one each notice was admitted under, and how a new one is kept.

Revisions never change once stored, so each is read once a process. Which one is in force is
asked anew every few seconds: a notice keeps the revision that its admitting process held.
While the database cannot be asked, the last answer stands: whoever has to say what is wrong
needs the operating values too, and nothing can be admitted or sent by them meanwhile.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import psycopg

from notifier.domain.policy import Policy
from notifier.domain.remarks import RemarkUnfit
from notifier.domain.remarks import check_reason as fit_reason
from notifier.store.database import Database, PooledConnection, StoreUnavailable
from notifier.store.ledger import policies

FRESH_FOR_S: Final = 2.0
RULES_WITHIN_S: Final = 5.0
"""A new revision rules in every process after this long: a shelf asks when somebody needs it, and
the scheduler compares its periods every two seconds with what the shelf says."""
ASKED_WITHIN_S: Final = 0.5
"""How long a caller waits for a connection to ask on, where there is an earlier answer."""


class PolicyRefused(ValueError):
    """The revision cannot be kept; the text says what is wanted."""


class StalePolicy(Exception):
    """Another revision is in force than the one that the author saw."""


def keep(database: Database, policy: Policy, *, base: int, author: str, reason: str) -> int:
    """Make `policy` the revision after `base`; its number.

    Every process has it within `RULES_WITHIN_S`. Notices that are admitted keep theirs; what is
    no notice's, as the limits of alerts, holds at once. Raises `PolicyRefused` or `StalePolicy`.
    """
    reason = check_reason(reason)
    with database.connection() as connection:
        if policies.newest(connection) == base:
            _check_differs(connection, base, policy)
        kept = policies.append(
            connection, base=base, document=policy.to_document(), digest=policy.digest(),
            author=author, reason=reason,
        )  # fmt: skip
    if not kept:
        raise StalePolicy
    return base + 1


def _check_differs(connection: PooledConnection, base: int, policy: Policy) -> None:
    if policy == Policy.from_stored(policies.document_of(connection, base)):
        raise PolicyRefused("nothing differs from the revision in force")


def check_reason(reason: str) -> str:
    """The reason as it is kept. Raises `PolicyRefused` where it says nothing or too much."""
    try:
        return fit_reason(reason)
    except RemarkUnfit as error:
        raise PolicyRefused(str(error)) from None


class PolicyShelf:
    """Policy revisions by number, shared by the threads of a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[int, Policy] = {}
        self._current = 0
        self._asked_at = float("-inf")
        self._lock = threading.Lock()

    def begin(self, first: Policy, author: str) -> None:
        """Make `first` the first revision of an empty database, whoever opens it first."""
        with self._database.connection() as connection:
            policies.begin(connection, first.to_document(), first.digest(), author)

    def current(self) -> tuple[int, Policy]:
        """The revision in force, at most `FRESH_FOR_S` seconds old while the database answers."""
        if time.monotonic() - self._asked_at > FRESH_FOR_S:
            self._ask()
        return self._current, self.of(self._current)

    def of(self, revision: int) -> Policy:
        """The policy of one revision; KeyError where there is none."""
        known = self._known.get(revision)
        if known is None:
            with self._database.connection() as connection:
                known = self.fetch(connection, revision)
        return known

    def fetch(self, connection: PooledConnection, revision: int) -> Policy:
        """As `of`, asking on a connection that is at hand."""
        known = self._known.get(revision)
        if known is None:
            known = Policy.from_stored(policies.document_of(connection, revision))
            self._known[revision] = known
        return known

    def _ask(self) -> None:
        """One thread asks; the others go on with what they have, once there is something."""
        if not self._lock.acquire(blocking=self._current == 0):
            return
        try:
            wait_s = ASKED_WITHIN_S if self._current else None
            with self._database.connection(timeout=wait_s) as connection:
                newest = policies.newest(connection)
                self.fetch(connection, newest)
            self._current = newest
        except (StoreUnavailable, psycopg.Error):
            if self._current == 0:
                raise
        finally:
            self._asked_at = time.monotonic()
            self._lock.release()
