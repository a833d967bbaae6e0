"""Writes the steps of a person's act into the audit, whatever becomes of the act."""

from __future__ import annotations

from dataclasses import dataclass

from notifier.accounts.read_audit import Outcome, Read
from notifier.domain.remarks import LONGEST, RemarkUnfit, check_remark
from notifier.web.people.visit import services, write_down


@dataclass(frozen=True, slots=True)
class Notebook:
    """One act on one object; `reason` is what may be kept of the person's words."""

    object_id: str
    kind: str
    reason: str | None

    def write(self, outcome: Outcome) -> None:
        """On a connection of its own, so that it stands whatever becomes of the act."""
        read = Read("act", self.kind, self.object_id, reason=self.reason, outcome=outcome)
        with services().database.connection() as connection:
            write_down(connection, read)


def fit_to_keep(words: str, longest: int = LONGEST) -> str | None:
    """The remark where it may be kept, else None: what is unfit is not written down either."""
    try:
        return check_remark(words, longest=longest)
    except RemarkUnfit:
        return None
