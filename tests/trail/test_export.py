"""An export is the same each time, holds no person, and is checked by one file alone."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notifier import trail_verifier
from notifier.domain.outcome import Accepted
from notifier.store.reads.trail_export import Scope
from notifier.store.trail import COLUMNS
from notifier.trail_verifier import HASHED, Unreadable, verify_file
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.test_admission_once import claim_of
from tests.db.ledger.test_trail import live_through_much
from tests.db.rig import BOTH, Rig
from tests.trail.tampering import KEYS, delivered, export_of, in_export, seal

Record = dict[str, Any]


def records(export: bytes) -> list[Record]:
    return [json.loads(line) for line in export.splitlines()]


def written(lines: list[Record]) -> bytes:
    return b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in lines)


def test_the_same_trail_gives_the_same_bytes(rig: Rig) -> None:
    delivered(rig, 1)
    delivered(rig, 2)
    seal(rig)

    assert export_of(rig) == export_of(rig)


def test_the_manifest_tells_what_the_file_holds(rig: Rig) -> None:
    notice_id = delivered(rig, 1)
    seal(rig)
    export = export_of(rig)
    header, *_, manifest = records(export)
    times = [row["recorded_at"] for row in rig.trail(notice_id)]
    body = b"".join(export.splitlines(keepends=True)[:-1])

    assert manifest == {
        "kind": "manifest",
        "rows": 6,
        "notices": 1,
        "checkpoints": 1,
        "first_recorded_at": f"{times[0]:%Y-%m-%dT%H:%M:%S.%f}Z",
        "last_recorded_at": f"{times[-1]:%Y-%m-%dT%H:%M:%S.%f}Z",
        "product_version": header["product_version"],
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    assert header["keys"] == {name: key.hex() for name, key in KEYS.items()}
    assert header["left_out"].startswith("No addresses, numbers, masks or fingerprints of people")
    assert header["scope"] == "all"


def test_p7_no_address_mask_or_fingerprint_is_in_an_export(rig: Rig) -> None:
    notice_id = rig.admit(email=claim_of("jana.moe@mail.example"))
    contact = rig.one("SELECT mask, fingerprint FROM contact WHERE notice_id = %s", notice_id)

    export = export_of(rig).decode()

    assert str(notice_id) in export
    for secret in ("jana", "mail.example", contact["mask"], contact["fingerprint"].hex()):
        assert secret not in export


def test_one_notice_comes_with_all_that_was_sealed_with_it(rig: Rig) -> None:
    first, other = delivered(rig, 1), delivered(rig, 2)
    seal(rig)
    third = delivered(rig, 3)
    seal(rig)

    export = export_of(rig, Scope(notice=first))

    verifier, faults = in_export(export)
    assert (verifier.notices, verifier.rows, verifier.checkpoints, faults) == (1, 6, 2, [])
    assert verifier.not_recomputed == 1
    found = {(each["kind"], each.get("notice_id")) for each in records(export)}
    assert ("anchor", str(other)) in found
    assert ("transition", str(other)) not in found
    assert str(third) not in export.decode()


def test_a_span_of_time_brings_whole_chains(rig: Rig, clock: Clock) -> None:
    start = clock.freeze(rig.now())
    early, across = delivered(rig, 1), rig.admit()
    clock.advance(60)
    rig.record(rig.start("ref-2"), Accepted("id-2"), "ref-2")
    clock.advance(60)
    late = delivered(rig, 3)

    minute = timedelta(seconds=60)
    middle = in_span(rig, Scope(since=start + minute, until=start + 2 * minute))
    to_the_end = in_span(rig, Scope(since=start + minute))
    from_the_start = in_span(rig, Scope(until=start + minute))

    assert middle == {str(across): 6}
    assert to_the_end == {str(across): 6, str(late): 6}
    assert from_the_start == {str(early): 6, str(across): 6}


def in_span(rig: Rig, scope: Scope) -> dict[str, int]:
    """How many rows of each notice are in an export, which holds."""
    export = export_of(rig, scope)
    assert in_export(export)[1] == []
    rows = [each["notice_id"] for each in records(export) if each["kind"] == "transition"]
    return {notice_id: rows.count(notice_id) for notice_id in rows}


def test_the_verifier_alone_checks_an_export_from_another_folder(rig: Rig, tmp_path: Path) -> None:
    delivered(rig, 1)
    seal(rig)
    shutil.copy(trail_verifier.__file__, tmp_path / "check.py")
    (tmp_path / "good.ndjson").write_bytes(export_of(rig))
    spoilt = export_of(rig).replace(b'"reason":"claimed"', b'"reason":"refused"')
    (tmp_path / "spoilt.ndjson").write_bytes(spoilt)
    (tmp_path / "other.ndjson").write_bytes(b"not an export\n")
    [(_, key)] = KEYS.items()

    def check(name: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-I", "check.py", name, "--public-key", key.hex()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    made_at = records(export_of(rig))[-2]["made_at"]
    checked = f"notices 1, rows 6, checkpoints 1\nlast checkpoint 1 of {made_at}\nall holds\n"
    assert check("good.ndjson") == (0, checked)
    status, told = check("spoilt.ndjson")
    assert (status, "altered notice" in told, "faults 2" in told) == (1, True, True)
    status, told = check("other.ndjson")
    assert (status, "cannot be checked" in told) == (2, True)


def test_p8_a_key_that_somebody_put_into_the_file_does_not_pass_for_ours(rig: Rig) -> None:
    delivered(rig, 1)
    seal(rig, seed=bytes(32))

    _, faults = in_export(export_of(rig))

    assert [each.kind.value for each in faults] == ["checkpoint signature"]


def test_p8_any_change_of_any_single_record_is_found(make_rig: MakeRig, clock: Clock) -> None:
    rig = make_rig(channels=BOTH)
    live_through_much(rig, clock)
    seal(rig)
    rig.admit()
    sound = records(export_of(rig))
    assert in_export(written(sound))[1] == []
    places = [
        place for place, each in enumerate(sound) if each["kind"] not in {"export", "manifest"}
    ]

    @settings(max_examples=150)
    @given(st.data())
    def spoil(data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(places))
        spoilt = changed(data, sound[place])
        assert faults_of([*sound[:place], *spoilt, *sound[place + 1 :]])

    spoil()


def changed(data: st.DataObject, record: Record) -> list[Record]:
    """The record gone, doubled, or with one field that is not what it was."""
    if (how := data.draw(st.sampled_from(["gone", "twice", "field", "field", "field"]))) != "field":
        return [] if how == "gone" else [record, record]
    name = data.draw(st.sampled_from(sorted(set(record) - {"kind"})))
    value = record[name]
    if isinstance(value, bool):
        return [{**record, name: not value}]
    if isinstance(value, int):
        return [{**record, name: value + data.draw(st.integers(-3, 3).filter(bool))}]
    other = st.text(max_size=8) if value is None else edited(value)
    return [{**record, name: data.draw(other)}]


def edited(value: str) -> st.SearchStrategy[str | None]:
    """Another text, or none."""
    place = st.integers(0, max(len(value) - 1, 0))
    replaced = place.flatmap(
        lambda at: st.sampled_from("0a9fz-").map(lambda by: value[:at] + by + value[at + 1 :])
    )
    return st.one_of(replaced, st.none()).filter(lambda each: each != value)


def faults_of(lines: list[Record]) -> object:
    """What is found, the manifest aside: it would miss any change of the file."""
    out = written(lines[:-1])
    manifest = {
        **lines[-1],
        "sha256": hashlib.sha256(out).hexdigest(),
        "rows": sum(each["kind"] == "transition" for each in lines),
        "checkpoints": sum(each["kind"] == "checkpoint" for each in lines),
    }
    try:
        return in_export(out + written([manifest]))[1]
    except Unreadable as refused:
        return refused


def test_the_verifier_hashes_the_columns_of_the_trail_in_their_order() -> None:
    assert list(HASHED) == list(COLUMNS)


@pytest.mark.parametrize(
    "lines",
    [b"", b"{}\n", b'{"kind":"export"}\n', b"\xff\n", b'["kind"]\n', b'{"kind":"manifest"}\n'],
)
def test_what_is_no_export_is_refused(lines: bytes) -> None:
    with pytest.raises(Unreadable):
        verify_file(lines.splitlines(keepends=True), lambda _fault: None)
