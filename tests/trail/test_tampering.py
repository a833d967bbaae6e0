"""P8: what a superuser does to the trail is found, in the database and from an export alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from tests.db.rig import Rig
from tests.trail.acts import ACTS, END, Seen
from tests.trail.tampering import (
    Intruder,
    delivered,
    export_of,
    in_database,
    in_export,
    seal,
)

NEEDING_NONE = [name for name, act in ACTS.items() if not act.only_sealed]
NEEDING_ONE = [name for name, act in ACTS.items() if act.only_sealed]


def committed(rig: Rig, intruder: Intruder, names: Iterable[str], *, sealed: bool) -> list[UUID]:
    """A notice for each act, and one to which nothing is done, first of all."""
    notices = [delivered(rig, number) for number in range(len([*names]) + 1)]
    if sealed:
        seal(rig)
    for name, notice_id in zip(names, notices[1:], strict=True):
        ACTS[name].commit(intruder, notice_id)
    return notices


def seen_of(rig: Rig, notices: list[UUID]) -> list[Seen]:
    """What is seen of each notice; from an export just the same as in the database."""
    _, faults = in_database(rig)
    assert in_export(export_of(rig))[1] == faults
    found: dict[str | None, set[tuple[str, int | None]]] = defaultdict(set)
    for fault in faults:
        found[fault.notice_id].add((fault.kind.value, fault.seq))
    assert set(found) <= {str(each) for each in notices}
    return [frozenset(found[str(each)]) for each in notices]


def test_p8_whatever_a_superuser_did_is_named_under_a_checkpoint(
    rig: Rig, intruder: Intruder
) -> None:
    notices = committed(rig, intruder, ACTS, sealed=True)

    bystander, *found = seen_of(rig, notices)

    assert bystander == frozenset()
    named = {name: seen >= ACTS[name].seen for name, seen in zip(ACTS, found, strict=True)}
    assert named == dict.fromkeys(ACTS, True)


def test_p8_what_needs_no_checkpoint_is_named_without_one(rig: Rig, intruder: Intruder) -> None:
    notices = committed(rig, intruder, NEEDING_NONE, sealed=False)

    bystander, *found = seen_of(rig, notices)

    assert bystander == frozenset()
    assert dict(zip(NEEDING_NONE, found, strict=True)) == {
        name: ACTS[name].seen for name in NEEDING_NONE
    }


def test_what_only_a_checkpoint_shows_goes_unseen_in_the_window_that_is_stated(
    rig: Rig, intruder: Intruder
) -> None:
    delivered(rig, 1000)
    seal(rig)
    since = rig.trail(delivered(rig, 1001))[0]["recorded_at"]
    before, _ = in_database(rig)

    notices = committed(rig, intruder, NEEDING_ONE, sealed=False)

    assert (before.uncovered_rows, before.last_checkpoint_at is None) == (END, False)
    assert before.uncovered_since == f"{since:%Y-%m-%dT%H:%M:%S.%f}Z"
    assert seen_of(rig, notices) == [frozenset()] * len(notices)


def test_p8_an_export_that_was_changed_afterwards_shows_it(rig: Rig) -> None:
    delivered(rig, 1)
    seal(rig)
    export = export_of(rig)
    lines = export.splitlines(keepends=True)

    cut_off = in_export(b"".join(lines[:-1]))[1]
    without_a_row = in_export(b"".join(lines[:3] + lines[4:]))[1]
    altered = in_export(export.replace(b'"reason":"claimed"', b'"reason":"refused"'))[1]

    assert {each.kind.value for each in cut_off} == {"file"}
    assert {each.kind.value for each in without_a_row} == {"missing", "file"}
    assert {each.kind.value for each in altered} == {"altered", "file"}
