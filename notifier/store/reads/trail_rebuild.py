"""Every state computed anew from the trail's rows alone, and compared with what is stored.

The computing half (`rebuild`) sees one notice's rows and nothing else. A state that somebody
changed without a row, or a row without its change, comes out as a difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.domain.event import PolicyMode
from notifier.domain.notice_state import DeliveryFacts, notice_state
from notifier.domain.reasons import Reason
from notifier.domain.states import DeliveryState
from notifier.store.reads import trail

if TYPE_CHECKING:
    from notifier.store.database import Database

Row = dict[str, Any]

STORED: Final = """
SELECT n.notice_id, n.state, n.basis, n.canceled_at IS NOT NULL AS canceled, d.channel,
       d.state AS delivery_state, d.reason AS delivery_reason, d.attempts
  FROM notice n LEFT JOIN delivery d USING (notice_id) ORDER BY n.notice_id, d.channel
"""

STARTS: Final = frozenset({Reason.ATTEMPT_STARTED})


@dataclass(frozen=True, slots=True)
class Standing:
    """A delivery as its rows leave it. `final`: this acceptance is the last that will be told."""

    state: str
    reason: str
    attempts: int = 0
    final: bool = False


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A notice as its rows leave it; `gaps` are rows that do not go on from where it stood."""

    deliveries: dict[str, Standing] = field(default_factory=dict)
    sms_is_fallback: bool = True
    canceled: bool = False
    gaps: tuple[str, ...] = ()

    @property
    def verdict(self) -> tuple[str, str | None]:
        """The notice's state and basis."""
        facts = {
            channel: DeliveryFacts(DeliveryState(each.state), each.final)
            for channel, each in self.deliveries.items()
        }
        return notice_state(
            facts.get("email"),
            facts.get("sms"),
            canceled=self.canceled,
            sms_is_fallback=self.sms_is_fallback,
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is stored otherwise than the trail says; None: it is not there."""

    notice_id: UUID
    what: str
    stored: object
    rebuilt: object


def rebuild(rows: Iterable[Row]) -> Rebuilt:
    """What one notice's rows, in order, come to. Reads nothing but these rows."""
    built = Rebuilt()
    for row in rows:
        built = _after(built, row)
    return built


def differences(database: Database) -> list[Difference]:
    """Every difference between the stored states and the trail, in one snapshot."""
    with database.connection() as connection, trail.snapshot(connection):
        rows = trail.stream(connection, "trail_rows", trail.ROWS.format(scope=trail.EVERYTHING))
        stored = trail.stream(connection, "stored_states", STORED)
        return [
            found
            for notice_id, (history, states) in trail.by_notice(rows, stored)
            for found in compare(notice_id, history, states)
        ]


def compare(notice_id: UUID, history: Sequence[Row], states: Sequence[Row]) -> Iterator[Difference]:
    """The differences of one notice; `states` are its rows of `STORED`."""
    built = rebuild(history)
    for gap in built.gaps:
        yield Difference(notice_id, "trail", gap, None)
    expected = _as_told(built) if history else {}
    actual = _as_stored(states)
    for what in sorted({*expected, *actual}):
        if actual.get(what) != expected.get(what):
            yield Difference(notice_id, what, actual.get(what), expected.get(what))


def _after(built: Rebuilt, row: Row) -> Rebuilt:
    if row["channel"] is None:
        return _after_notice_row(built, row)
    channel, before = row["channel"], built.deliveries.get(row["channel"])
    stood = before.state if before else None
    if row["from_state"] != stood:
        gap = f"row {row['seq']}: {channel} goes on from {row['from_state']}, stood at {stood}"
        built = replace(built, gaps=(*built.gaps, gap))
    if row["to_state"] == row["from_state"]:
        return built
    standing = Standing(
        row["to_state"], row["reason"], _attempts(before, row), bool(_evidence(row).get("final"))
    )
    canceled = built.canceled or (before is None and row["to_state"] == DeliveryState.CANCELED)
    return replace(built, deliveries={**built.deliveries, channel: standing}, canceled=canceled)


def _after_notice_row(built: Rebuilt, row: Row) -> Rebuilt:
    if row["reason"] == Reason.EVENT_ADMITTED:
        mode = _evidence(row).get("mode")
        return replace(built, sms_is_fallback=mode == PolicyMode.EMAIL_THEN_SMS)
    if row["reason"] == Reason.CANCEL_RECORDED:
        return replace(built, canceled=True)
    return built


def _attempts(before: Standing | None, row: Row) -> int:
    if row["reason"] in STARTS:
        return int(row["attempt"])
    return before.attempts if before else 0


def _evidence(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["evidence"] or "{}")
    return found


def _as_told(built: Rebuilt) -> dict[str, object]:
    state, basis = built.verdict
    told: dict[str, object] = {"state": state, "basis": basis, "canceled": built.canceled}
    for channel, each in built.deliveries.items():
        told |= _delivery(channel, each.state, each.reason, each.attempts)
    return told


def _as_stored(states: Sequence[Row]) -> dict[str, object]:
    if not states:
        return {}
    told: dict[str, object] = {name: states[0][name] for name in ("state", "basis", "canceled")}
    for row in states:
        if row["channel"] is not None:
            told |= _delivery(
                row["channel"], row["delivery_state"], row["delivery_reason"], row["attempts"]
            )
    return told


def _delivery(channel: str, state: str, reason: str, attempts: int) -> dict[str, object]:
    return {
        f"{channel} state": state,
        f"{channel} reason": reason,
        f"{channel} attempts": attempts,
    }
