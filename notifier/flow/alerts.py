"""What a person may do to an alert: own it, write beside it, end it, and review it afterwards.

Each act is decided on the version that the person saw, and refused where the episode has moved on.
A review is written once the episode has ended, and may be written anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from notifier.domain.remarks import check_remark
from notifier.store import alert_acts
from notifier.store.database import Database


class AlertMoved(Exception):
    """The episode is not as it was seen, or was never there; nothing was done."""


class LedToAction(StrEnum):
    """Whether an alert was worth the interruption."""

    YES = "yes"
    NO = "no"
    PARTLY = "partly"


class Verdict(StrEnum):
    """What should become of the rule."""

    KEEP = "keep"
    TUNE = "tune"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Alerts:
    """The acts; each raises `AlertMoved`, and `RemarkUnfit` for a text that cannot be kept."""

    database: Database

    def acknowledge(
        self, episode_id: UUID, *, version: int, by: str, note: str | None = None
    ) -> None:
        """Say that somebody has it in hand. An open alert has one owner."""
        self._act(alert_acts.ACKNOWLEDGE, episode_id, version, by=by, text=_maybe(note, "note"))

    def unacknowledge(self, episode_id: UUID, *, version: int, by: str) -> None:
        """Give it back; the note of it names who did."""
        self._act(alert_acts.UNACKNOWLEDGE, episode_id, version, by=by, text="gave it back")

    def note(self, episode_id: UUID, *, text: str, by: str) -> None:
        """Write beside an episode, whatever its state."""
        with self.database.connection() as connection:
            if not alert_acts.note(connection, episode_id, by=by, text=check_remark(text, "note")):
                raise AlertMoved

    def resolve(self, episode_id: UUID, *, version: int, by: str, note: str) -> None:
        """End an open alert by hand; whoever was paged is told. It opens anew if it stands."""
        with self.database.connection() as connection:
            done = alert_acts.resolve(
                connection, episode_id, version=version, by=by, note=check_remark(note, "note")
            )
        if not done:
            raise AlertMoved

    def review(
        self,
        episode_id: UUID,
        *,
        version: int,
        by: str,
        led_to_action: LedToAction,
        what: str | None,
        verdict: Verdict,
    ) -> None:
        """Say what an ended alert led to, and what should become of its rule."""
        self._act(
            alert_acts.REVIEW, episode_id, version, by=by, text=_maybe(what, "review"),
            led=str(led_to_action), verdict=str(verdict),
        )  # fmt: skip

    def _act(self, act: str, episode_id: UUID, version: int, **values: str | None) -> None:
        with self.database.connection() as connection:
            if not alert_acts.act(connection, act, episode_id, version=version, **values):
                raise AlertMoved


def _maybe(text: str | None, field: str) -> str | None:
    return check_remark(text, field) if text and text.strip() else None
