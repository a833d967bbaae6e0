"""Links a help-desk ticket to a notice; linking again changes nothing."""

from __future__ import annotations

from uuid import UUID

from notifier.domain.reasons import Reason
from notifier.flow.desk import Desk
from notifier.store.database import Database
from notifier.store.ledger import tickets
from notifier.store.ledger.book import Origin
from notifier.store.ledger.held_rows import NoSuchNotice


def link_by_token(
    database: Database, desk: Desk, *, ticket_id: str, notice_id: UUID, token: str
) -> bool:
    """As `link`, by a program: `token` names its API token, and no person has such a name."""
    by = f"token:{token}"
    return link(
        database, desk, ticket_id=ticket_id, notice_id=notice_id, by=by, actor=f"operator:{by}"
    )


def link(
    database: Database,
    desk: Desk,
    *,
    ticket_id: str,
    notice_id: UUID,
    by: str,
    actor: str = "operator",
) -> bool:
    """Link the ticket; False where there is no such notice. `actor` is the trail's."""
    try:
        with (
            database.connection() as connection,
            desk.open_on(connection, notice_id) as book,
        ):
            if tickets.link(connection, ticket_id, notice_id, by):
                evidence = {"ticket": ticket_id, "by": by}
                book.note(None, Reason.TICKET_LINKED, origin=Origin(actor, evidence=evidence))
    except NoSuchNotice:
        return False
    return True
