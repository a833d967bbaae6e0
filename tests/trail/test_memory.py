"""A trail of any length is checked in the memory that one notice takes."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterator
from typing import Any

from notifier.trail_verifier import HASHED, Verifier, row_hash

ROWS = 5


def trail_of(notices: int) -> Iterator[dict[str, Any]]:
    """Sound chains, made while they are read."""
    for number in range(notices):
        notice_id = f"{number:032x}"
        last = hashlib.sha256(notice_id.encode()).hexdigest()
        for seq in range(1, ROWS + 1):
            row = dict.fromkeys(HASHED) | {"kind": "transition", "notice_id": notice_id}
            row |= {"seq": seq, "prev_hash": last, "recorded_at": AT, "occurred_at": AT}
            row["hash"] = last = row_hash(row)
            yield row
        yield {
            "kind": "notice",
            "notice_id": notice_id,
            "admitted": True,
            "seq": ROWS,
            "hash": last,
        }


AT = "2026-03-01T12:00:00.000000Z"


def peak(notices: int) -> int:
    """Bytes that checking so many took at the most."""
    faults: list[object] = []
    verifier = Verifier({}, faults.append)
    tracemalloc.start()
    verifier.run(trail_of(notices))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (verifier.rows, verifier.notices, faults) == (notices * ROWS, notices, [])
    return most


def test_ten_times_the_trail_takes_no_more_memory() -> None:
    peak(10)

    assert peak(600) < 2 * peak(60)
