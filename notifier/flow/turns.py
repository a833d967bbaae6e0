"""The turn to try a paused provider: taken with a claim, given back where it told nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import psycopg

from notifier.flow.desk import Desk
from notifier.store.database import Database, PooledConnection, StoreUnavailable
from notifier.store.ledger import pauses
from notifier.store.ledger.claim import Claim


def claim_in_turn(
    connection: PooledConnection,
    provider: str,
    turn: timedelta,
    claim: Callable[[datetime], list[Claim]],
) -> list[Claim]:
    """What `claim` takes in the turn to try `provider`; nothing where that is not free.

    `turn` is how long the try may take. One that finds no work leaves the turn to others.
    """
    taken: list[Claim] = []
    if pauses.is_over(connection, provider):
        with connection.transaction() as transaction:
            until = pauses.take_turn(connection, provider=provider, turn=turn)
            taken = claim(until) if until else []
            if not taken:
                raise psycopg.Rollback(transaction)
    return taken


def give_back(database: Database, desk: Desk, claim: Claim, provider: str) -> None:
    """Let somebody else try, where this claim was to and nothing was learnt of the provider.

    A turn that cannot be given back, because the store is away, lapses.
    """
    if claim.turn_until is None:
        return
    with suppress(StoreUnavailable, psycopg.Error), database.connection() as connection:
        if pauses.give_back(connection, provider=provider, turn_until=claim.turn_until):
            desk.wake()
