"""A trail under checkpoints, an intruder who is superuser, and everything that looks for him."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from notifier import __version__
from notifier.domain.outcome import Accepted
from notifier.flow.checkpoints import Seal, checkpoint, public_keys
from notifier.store.reads import trail as reads
from notifier.store.reads import trail_export
from notifier.store.reads.trail_export import Scope
from notifier.store.trail import sealed
from notifier.trail_verifier import Fault, Verifier, verify_file
from tests.db.rig import Rig

SEED = bytes(range(32))
KEYS = public_keys([SEED])
ALWAYS = timedelta(0)


def export_of(rig: Rig, scope: Scope | None = None) -> bytes:
    """The export's bytes."""
    with rig.database.connection() as connection, reads.snapshot(connection):
        return export_on(connection, scope or Scope())


def export_on(connection: psycopg.Connection[dict[str, Any]], scope: Scope) -> bytes:
    """The same in a transaction that is at hand."""
    out = io.BytesIO()
    found = trail_export.records(connection, scope)
    trail_export.write(found, scope, keys=KEYS, version=__version__, out=out.write)
    return out.getvalue()


def in_database(
    rig: Rig, expected: Mapping[int, str] | None = None, keys: Mapping[str, bytes] = KEYS
) -> tuple[Verifier, list[Fault]]:
    """What `flask trail verify` sees."""
    faults: list[Fault] = []
    verifier = Verifier(keys, faults.append, expected or {})
    with rig.database.connection() as connection, reads.snapshot(connection):
        verifier.run(trail_export.records(connection, Scope()))
    return verifier, faults


def in_export(
    export: bytes, expected: Mapping[int, str] | None = None
) -> tuple[Verifier, list[Fault]]:
    """What somebody sees who has the export and the public key."""
    faults: list[Fault] = []
    lines = export.splitlines(keepends=True)
    return verify_file(lines, faults.append, KEYS.values(), expected), faults


def seen(rig: Rig, expected: Mapping[int, str] | None = None) -> set[tuple[str, int | None]]:
    """Kind and row of every fault; the export must show just what the database shows."""
    _, faults = in_database(rig, expected)
    assert in_export(export_of(rig), expected)[1] == faults
    return {(each.kind.value, each.seq) for each in faults}


def seal(rig: Rig, limit: int = 20_000, seed: bytes = SEED) -> int:
    """Make a checkpoint now."""
    with rig.database.connection() as connection:
        return checkpoint(Seal.of(seed), connection, every=ALWAYS, limit=limit)


@dataclass
class Intruder:
    """A superuser for whom no trigger fires and who knows how rows are hashed."""

    connection: psycopg.Connection[dict[str, Any]]

    def run(self, *statements: str, **values: object) -> None:
        for statement in statements:
            self.connection.execute(statement, values)

    def rehash(self, notice_id: UUID, seq: int) -> None:
        """Give a row the hash that its content, as it is now, should have."""
        self.run(
            f"UPDATE transition t SET hash = {sealed('t.prev_hash', 't')}"  # noqa: S608
            " WHERE notice_id = %(notice)s AND seq = %(seq)s",
            notice=notice_id,
            seq=seq,
        )

    def rechain(self, notice_id: UUID) -> None:
        """Hash the whole chain anew and put its end on the notice: a perfect forgery."""
        rows = self.connection.execute(
            "SELECT seq FROM transition WHERE notice_id = %s ORDER BY seq", [notice_id]
        ).fetchall()
        for row in rows:
            self.run(LINK, notice=notice_id, seq=row["seq"])
            self.rehash(notice_id, row["seq"])
        self.run(HEAD, notice=notice_id)


LINK = """
    UPDATE transition t SET prev_hash = coalesce(
        (SELECT hash FROM transition p WHERE p.notice_id = t.notice_id AND p.seq < t.seq
          ORDER BY p.seq DESC LIMIT 1), sha256(convert_to(notice_id::text, 'UTF8')))
     WHERE notice_id = %(notice)s AND seq = %(seq)s
"""
HEAD = """
    UPDATE notice n SET seq = t.seq, head = t.hash FROM transition t
     WHERE n.notice_id = %(notice)s AND t.notice_id = n.notice_id
       AND t.seq = (SELECT max(seq) FROM transition WHERE notice_id = n.notice_id)
"""


def delivered(rig: Rig, number: int) -> UUID:
    """A notice with six rows, complete."""
    claim = rig.start_new(f"ref-{number}")
    rig.record(claim, Accepted(f"id-{number}"), f"ref-{number}")
    return claim.notice_id
