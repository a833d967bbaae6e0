"""What a replay does besides its call: its mark, what the link answer means for it, its last look.

The delivery is unknown before, and whatever is met here it stays so: a message may be on its
way already. Where a replay can never be made any more its mark is taken back; where it cannot
be made now, the mark falls due again by itself.
"""

from __future__ import annotations

from datetime import timedelta

from notifier.domain.states import Channel
from notifier.flow import put_back
from notifier.flow.contacts import Contacts
from notifier.flow.desk import Desk
from notifier.ports.links import LinkAnswer, LinkGone, LinkGranted, LinkUnavailable, LinkWithheld
from notifier.store.database import Database, PooledConnection
from notifier.store.ledger import replay
from notifier.store.ledger.claim import Claim, Original, Take
from notifier.store.ledger.replay import ReplayVerdict


def claim(
    connection: PooledConnection,
    *,
    channel: Channel,
    provider: str,
    key_lifetime_s: float,
    take: Take,
) -> list[Claim]:
    """Take marks; none where the provider knows no key again (lifetime 0)."""
    if not key_lifetime_s:
        return []
    return replay.claim(
        connection,
        channel=channel,
        provider=provider,
        key_lifetime=timedelta(seconds=key_lifetime_s),
        take=take,
    )


def understand(
    desk: Desk, contacts: Contacts, claim: Claim, answer: LinkAnswer
) -> LinkGranted | None:
    """The link for a replay; None where there is none, and never a move of the delivery.

    Another destination than the first call's gets no replay: that would be another message.
    """
    match answer:
        case LinkGranted() if contacts.is_known(claim, answer.destination):
            return answer
        case LinkGranted() | LinkWithheld():
            drop(desk, claim)
        case LinkGone(reason=reason):
            put_back.end_reset(desk, claim, reason)
            drop(desk, claim)
        case LinkUnavailable():
            pass  # the mark falls due again
    return None


def drop(desk: Desk, claim: Claim) -> None:
    """Take the mark back: the attempt is not repeated. Left alone where somebody else has it."""
    with desk.open(claim.notice_id) as book:
        channel = Channel(claim.channel)
        delivery = book.deliveries[channel]
        if delivery.fence == claim.fence and delivery.replay_due_at is not None:
            book.amend(channel, replay_due_at=None)


def stand_back(desk: Desk, claim: Claim, verdict: ReplayVerdict) -> None:
    """What follows where a guard forbade the start."""
    match verdict:
        case ReplayVerdict.SUPERSEDED:
            put_back.end_reset(desk, claim, "superseded")
            drop(desk, claim)
        case (
            ReplayVerdict.CANCELED
            | ReplayVerdict.TOO_LATE
            | ReplayVerdict.FALLBACK_TAKEN
            | ReplayVerdict.NOT_NEEDED
            | ReplayVerdict.KEY_TOO_OLD
            | ReplayVerdict.CHANGED
        ):
            drop(desk, claim)
        case (
            ReplayVerdict.HALTED
            | ReplayVerdict.PAUSED
            | ReplayVerdict.FENCED
            | ReplayVerdict.RESOLVED
            | ReplayVerdict.STARTED_BEFORE
            | ReplayVerdict.STARTED
        ):
            return


def is_needed(database: Database, claim: Claim, original: Original) -> bool:
    """The last look before the call: nothing has told meanwhile what became of the first one."""
    with database.connection() as connection:
        return replay.is_unresolved(
            connection,
            notice_id=claim.notice_id,
            channel=claim.channel,
            fence=claim.fence,
            number=original.number,
        )
