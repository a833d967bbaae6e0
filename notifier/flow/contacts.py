"""What is kept of a destination: a mask and a keyed fingerprint, apart from the trail.

The link answer is newer than the event and rules; that it differs is a fact on the trail.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

from notifier.domain.reasons import Reason
from notifier.domain.states import Channel
from notifier.domain.values import Destination
from notifier.flow.desk import Desk
from notifier.store.database import Database
from notifier.store.ledger import contacts
from notifier.store.ledger.book import Origin
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.looks import Look

Row = dict[str, Any]
CHANGED: Final = Origin("service", evidence={"source": "link"})


class Contacts:
    """Compares and keeps what was learnt of destinations; `keys` newest first."""

    def __init__(self, database: Database, keys: tuple[bytes, ...]) -> None:
        self._database = database
        self._keys = keys

    def columns(self, channel: Channel, destination: Destination | None) -> dict[str, Any]:
        """The admission statement's parameters for a destination that the event brought."""
        if destination is None:
            return {f"{channel}_mask": None, f"{channel}_fingerprint": None}
        return {
            f"{channel}_mask": destination.mask,
            f"{channel}_fingerprint": bytes.fromhex(destination.fingerprint(self._keys[0])),
        }

    def learn(self, desk: Desk, claim: Claim, destination: Destination) -> None:
        """Keep the link answer's destination; note on the trail where it is another one."""
        with self._database.connection() as connection:
            known = contacts.fingerprint_of(connection, claim.notice_id, claim.channel)
            if known is not None and known in self._fingerprints(destination):
                return
            self._keep(connection, claim, destination)
        if known is not None:
            with desk.open(claim.notice_id) as book:
                book.note(Channel(claim.channel), Reason.DESTINATION_CHANGED, origin=CHANGED)

    def is_known(self, look: Look | Claim, destination: Destination) -> bool:
        """Whether a look-up's or a replay's destination is the one that the attempt went to."""
        with self._database.connection() as connection:
            known = contacts.fingerprint_of(connection, look.notice_id, look.channel)
        return known is not None and known in self._fingerprints(destination)

    def kept(self, connection: psycopg.Connection[Row], look: Look) -> list[bytes]:
        """The fingerprint that is kept for the destination of an attempt."""
        known = contacts.fingerprint_of(connection, look.notice_id, look.channel)
        return [known] if known is not None else []

    def _keep(
        self, connection: psycopg.Connection[Row], claim: Claim, destination: Destination
    ) -> None:
        contacts.keep(
            connection,
            notice_id=claim.notice_id,
            channel=claim.channel,
            mask=destination.mask,
            fingerprint=bytes.fromhex(destination.fingerprint(self._keys[0])),
        )

    def _fingerprints(self, destination: Destination) -> set[bytes]:
        return {bytes.fromhex(destination.fingerprint(key)) for key in self._keys}
