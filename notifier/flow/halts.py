"""Stops sending at once, by scope, and lets it go on again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import uuid_utils

from notifier.domain.remarks import LONGEST_REASON, RemarkUnfit
from notifier.domain.remarks import check_reason as fit_reason
from notifier.store.database import Database
from notifier.store.ledger import halts
from notifier.store.ledger.halts import Halt, InFlight, StaleHalts

__all__ = ["LONGEST_REASON", "Halt", "InFlight", "StaleHalts"]

SCOPE: Final = re.compile(
    r"all|channel:(email|sms)|provider:[a-z0-9-]{1,32}"
    r"|template:[A-Za-z0-9._-]{1,64}@[A-Za-z0-9._-]{1,32}"
    r"|(account|event):[A-Za-z0-9._:-]{1,128}"
)
SCOPE_FORMS: Final = (
    "all, channel:email, channel:sms, provider:NAME, template:ID@REVISION, account:ID or event:ID"
)


class HaltRefused(ValueError):
    """The scope or the reason cannot be used; the text says what is wanted."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A halt that stands and what had started before it; in effect when nothing is in flight."""

    halt: Halt
    in_flight: list[InFlight]

    @property
    def in_effect(self) -> bool:
        """Whether nothing that began before the halt can still reach a provider."""
        return not self.in_flight


def engage(
    database: Database, *, scope: str, reason: str, by: str, version: str | None = None
) -> Acknowledgement:
    """Stop every start in `scope`. Once this returns, nothing else starts.

    A `version` says which halts stood when this was decided; raises `StaleHalts` when others do.
    """
    reason = check(scope, reason)
    halt_id = UUID(bytes=uuid_utils.uuid7().bytes)
    with database.connection() as connection:
        halt, in_flight = halts.engage(
            connection, halt_id=halt_id, scope=scope, reason=reason, by=by, version=version
        )
    return Acknowledgement(halt, in_flight)


def release(database: Database, *, scope: str, reason: str, by: str) -> bool:
    """Lift the halt with `scope`; False where none stands."""
    reason = check(scope, reason)
    with database.connection() as connection:
        return halts.release(connection, scope=scope, reason=reason, by=by)


def release_one(database: Database, *, halt_id: UUID, reason: str, by: str, version: str) -> bool:
    """Lift the halt that somebody looked at; False where the same person did so before.

    Raises `StaleHalts` where the halts are not those that were looked at.
    """
    reason = check_reason(reason)
    with database.connection() as connection:
        return halts.release_one(connection, halt_id=halt_id, reason=reason, by=by, version=version)


def standing(database: Database) -> list[Acknowledgement]:
    """The halts that stand, each with what is still in flight under it."""
    with database.connection() as connection:
        return [
            Acknowledgement(halt, halts.in_flight(connection, halt.scope))
            for halt in halts.standing(connection)
        ]


def check(scope: str, reason: str) -> str:
    """The reason as it is kept. Raises `HaltRefused` unless both can be used."""
    if SCOPE.fullmatch(scope) is None:
        message = f"a scope is one of {SCOPE_FORMS}"
        raise HaltRefused(message)
    return check_reason(reason)


def check_reason(reason: str) -> str:
    """The reason as it is kept. Raises `HaltRefused` where it says nothing or too much."""
    try:
        return fit_reason(reason)
    except RemarkUnfit as error:
        raise HaltRefused(str(error)) from None
