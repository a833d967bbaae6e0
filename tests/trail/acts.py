"""What an intruder does to a notice's trail, and what must be seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tests.trail.tampering import Intruder

Seen = frozenset[tuple[str, int | None]]

END: Final = 6
"""The last row of a delivered notice."""


@dataclass(frozen=True)
class Act:
    """Statements against one notice (`{it}`), then what the intruder hashes anew.

    `only_sealed`: what is left is a whole trail, so that nothing but a checkpoint can show it.
    """

    seen: Seen
    statements: tuple[str, ...]
    rehashed: int | None = None
    rechained: bool = False
    only_sealed: bool = False

    def commit(self, intruder: Intruder, notice_id: UUID) -> None:
        for statement in self.statements:
            intruder.run(statement.format(it="notice_id = %(notice)s"), notice=notice_id)
        if self.rehashed:
            intruder.rehash(notice_id, self.rehashed)
        if self.rechained:
            intruder.rechain(notice_id)


def act(*seen: tuple[str, int | None], by: tuple[str, ...], **how: object) -> Act:
    return Act(frozenset(seen), by, **how)  # type: ignore[arg-type]


ALTERED: Final = ("UPDATE transition SET detail = 'blocked' WHERE {it} AND seq = 4",)
LAST_ALTERED: Final = ("UPDATE transition SET reason = 'receipt' WHERE {it} AND seq = 6",)
DELETED: Final = ("DELETE FROM transition WHERE {it} AND seq = 4",)
# In two steps, for the sake of the primary key.
MOVED_UP: Final = (
    "UPDATE transition SET seq = seq + 1000 WHERE {it} AND seq >= 5",
    "UPDATE transition SET seq = seq - 1001 WHERE {it} AND seq >= 1000",
)
SWAPPED: Final = (
    "UPDATE transition SET seq = 1000 WHERE {it} AND seq = 4",
    "UPDATE transition SET seq = 4 WHERE {it} AND seq = 5",
    "UPDATE transition SET seq = 5 WHERE {it} AND seq = 1000",
)
INSERTED: Final = (
    "UPDATE transition SET seq = seq + 1000 WHERE {it} AND seq >= 4",
    "UPDATE transition SET seq = seq - 999 WHERE {it} AND seq >= 1000",
    """INSERT INTO transition
       SELECT (jsonb_populate_record(t, jsonb_build_object('seq', 4, 'prev_hash', t.hash))).*
         FROM transition t WHERE {it} AND seq = 3""",
)
APPENDED: Final = (
    """INSERT INTO transition
       SELECT (jsonb_populate_record(t, jsonb_build_object('seq', 7, 'prev_hash', t.hash))).*
         FROM transition t WHERE {it} AND seq = 6""",
)
CUT: Final = ("DELETE FROM transition WHERE {it} AND seq > 4",)
CHAIN_DROPPED: Final = ("DELETE FROM transition WHERE {it}",)
DROPPED: Final = (
    *CHAIN_DROPPED,
    "DELETE FROM notice WHERE {it}",
    "DELETE FROM delivery WHERE {it}",
    "DELETE FROM attempt WHERE {it}",
)
KEYS_DROPPED: Final = ("DELETE FROM admission WHERE {it}",)

ACTS: Final[Mapping[str, Act]] = {
    "altered": act(("altered", 4), by=ALTERED),
    "altered, its hash too": act(("altered", 4), by=ALTERED, rehashed=4),
    "altered, all hashes and the head too": act(
        ("altered", END), by=ALTERED, rechained=True, only_sealed=True
    ),
    "the last row altered, its hash too": act(
        ("head mismatch", END), by=LAST_ALTERED, rehashed=END
    ),
    "deleted": act(("missing", 4), by=DELETED),
    "the first deleted": act(("missing", 1), by=("DELETE FROM transition WHERE {it} AND seq = 1",)),
    "deleted, the rest renumbered": act(
        ("reordered", 4), ("reordered", 5), ("truncated", 5), by=(*DELETED, *MOVED_UP)
    ),
    "deleted, the rest renumbered, all hashes and the head too": act(
        ("truncated", 5), by=(*DELETED, *MOVED_UP), rechained=True, only_sealed=True
    ),
    "reordered": act(("reordered", 4), ("reordered", 5), by=SWAPPED),
    "reordered, all hashes and the head too": act(
        ("altered", END), by=SWAPPED, rechained=True, only_sealed=True
    ),
    "inserted": act(
        ("inserted", 4),
        ("reordered", 5),
        ("reordered", 6),
        ("reordered", 7),
        ("head mismatch", 7),
        by=INSERTED,
        rehashed=4,
    ),
    "inserted, all hashes and the head too": act(
        ("altered", END), by=INSERTED, rechained=True, only_sealed=True
    ),
    "appended, its hash too": act(("inserted", 7), by=APPENDED, rehashed=7),
    "truncated": act(("truncated", 4), by=CUT),
    "truncated, the head too": act(("truncated", 4), by=CUT, rechained=True, only_sealed=True),
    "the head altered": act(
        ("head mismatch", END), by=("UPDATE notice SET head = sha256(head) WHERE {it}",)
    ),
    "the head's number altered": act(
        ("head mismatch", END), by=("UPDATE notice SET seq = 5 WHERE {it}",)
    ),
    "a whole notice dropped": act(("missing", 1), by=DROPPED),
    "a whole notice dropped, its keys too": act(
        ("missing", 1), by=(*DROPPED, *KEYS_DROPPED), only_sealed=True
    ),
    "the chain dropped": act(("missing", 1), by=CHAIN_DROPPED),
    "the notice dropped": act(("head mismatch", END), by=("DELETE FROM notice WHERE {it}",)),
    "the admission dropped": act(("missing", 0), by=KEYS_DROPPED),
}
