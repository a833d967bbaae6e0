"""Checks an export of the trail with nothing but the export: one file, to be copied anywhere.

    python -m notifier.trail_verifier export.ndjson [--public-key HEX] [--expect NUMBER:DIGEST]

Needs Python 3.11 and the package `cryptography`. The format and every rule that is checked here
stand in docs/reference/trail-export.md, so that an auditor can write another. It knows nothing
of the product's code and none of the database's functions. Exit status: 0 when all holds, 1
with a line for each fault, 2 for a file that is no export.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, TextIO

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Record = dict[str, Any]

TIMES: Final = ("recorded_at", "occurred_at")
HASHED: Final = tuple(
    """
    notice_id seq recorded_at occurred_at event_id reset_request_id correlation_id channel
    attempt actor from_state to_state reason detail provider provider_ref receipt_id
    remaining_us template_revision policy_revision evidence
    """.split()  # noqa: SIM905 - a list of names reads better without quotes
)
"""A row's fields under its hash, in the order in which they are hashed."""
EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
OF_A_NOTICE: Final = frozenset({"transition", "notice", "anchor"})
NO_CHECKPOINT: Final = "0" * 64
SIGNED: Final = ("number", "made_at", "previous", "heads", "heads_sha256", "key_id")
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "export": frozenset({"kind", "format", "product_version", "scope", "keys", "left_out"}),
    "transition": frozenset({"kind", *HASHED, "prev_hash", "hash"}),
    "notice": frozenset({"kind", "notice_id", "admitted", "seq", "hash"}),
    "anchor": frozenset({"kind", "notice_id", "checkpoint", "seq", "hash"}),
    "checkpoint": frozenset({"kind", *SIGNED, "signature", "hash"}),
    "manifest": frozenset(
        {"kind", "rows", "notices", "checkpoints", "first_recorded_at", "last_recorded_at"}
        | {"product_version", "sha256"}
    ),
}
"""Each kind of record with its fields. One more would stand there unprotected."""


class Kind(StrEnum):
    """What is wrong."""

    ALTERED = "altered"
    MISSING = "missing"
    REORDERED = "reordered"
    INSERTED = "inserted"
    TRUNCATED = "truncated"
    HEAD_MISMATCH = "head mismatch"
    SIGNATURE = "checkpoint signature"
    CHECKPOINT_CHAIN = "checkpoint chain"
    FILE = "file"


@dataclass(frozen=True)
class Fault:
    """One thing that does not hold. `notice_id` and `seq` where it is about a row."""

    kind: Kind
    detail: str
    notice_id: str | None = None
    seq: int | None = None

    def __str__(self) -> str:
        place = f" notice {self.notice_id}" if self.notice_id else ""
        row = f" row {self.seq}" if self.seq is not None else ""
        return f"{self.kind}{place}{row}: {self.detail}"


class Unreadable(Exception):
    """The file is no export of a format that is known here."""


OnFault = Callable[[Fault], None]


@dataclass
class Verifier:
    """Takes an export's records in their order and tells each fault once, in constant memory.

    `keys` are public keys by key id; `expected` are hashes of checkpoints by number, known
    from elsewhere (a log line, an earlier export).
    """

    keys: Mapping[str, bytes]
    tell: OnFault
    expected: Mapping[int, str] = field(default_factory=dict)
    partial: bool = False
    notices: int = 0
    rows: int = 0
    checkpoints: int = 0
    faults: int = 0
    not_recomputed: int = 0
    uncovered_rows: int = 0
    uncovered_since: str | None = None
    last_checkpoint_at: str | None = None
    _sealed: dict[int, _Heads] = field(default_factory=dict)
    _last_notice: str = ""
    _last_checkpoint: tuple[int, str] = (0, NO_CHECKPOINT)
    _seen: dict[int, str] = field(default_factory=dict)

    def run(self, records: Iterable[Record]) -> None:
        """Check all of it."""
        for notice_id, group in groupby(records, key=_notice_of):
            if notice_id is not None:
                self._notice(notice_id, list(group))
                continue
            for record in group:
                if record["kind"] == "checkpoint":
                    self._checkpoint(record)
        self._end()

    def note(self, fault: Fault) -> None:
        """Count a fault and tell it."""
        self.faults += 1
        self.tell(fault)

    def _notice(self, notice_id: str, group: list[Record]) -> None:
        if notice_id <= self._last_notice:
            self.note(Fault(Kind.FILE, "a notice stands out of its order", notice_id))
        self._last_notice = notice_id
        of_kind = {kind: [each for each in group if each["kind"] == kind] for kind in OF_A_NOTICE}
        rows, anchors = of_kind["transition"], of_kind["anchor"]
        for anchor in anchors:
            self._sealed.setdefault(anchor["checkpoint"], _Heads()).add(anchor)
        if not rows and not of_kind["notice"] and self.partial:
            return  # sealed together with a notice that was asked for
        self.notices += 1
        self.rows += len(rows)
        self._window(rows, anchors)
        if len(of_kind["notice"]) > 1:
            self.note(Fault(Kind.FILE, "a notice has two heads", notice_id))
        stored = of_kind["notice"][0] if of_kind["notice"] else None
        for fault in _distinct(_chain_faults(notice_id, rows, stored, anchors)):
            self.note(fault)

    def _window(self, rows: list[Record], anchors: list[Record]) -> None:
        covered = max((anchor["seq"] for anchor in anchors), default=0)
        open_rows = [row["recorded_at"] for row in rows if row["seq"] > covered]
        self.uncovered_rows += len(open_rows)
        if open_rows:
            self.uncovered_since = min([*open_rows, self.uncovered_since or open_rows[0]])

    def _checkpoint(self, record: Record) -> None:
        self.checkpoints += 1
        self.last_checkpoint_at = record["made_at"]
        self._seen[record["number"]] = record["hash"]
        heads: _Heads | None = self._sealed.pop(record["number"], _Heads())
        if self.partial and record["heads"] and heads and not heads.count:
            self.not_recomputed += 1
            heads = None
        for fault in _checkpoint_faults(record, self._last_checkpoint, heads, self.keys):
            self.note(fault)
        self._last_checkpoint = (record["number"], record["hash"])

    def _end(self) -> None:
        for number in self._sealed:
            said = f"checkpoint {number} is not there, but what it sealed is"
            self.note(Fault(Kind.CHECKPOINT_CHAIN, said))
        for number, digest in self.expected.items():
            if self._seen.get(number) != digest:
                there = "is another one" if number in self._seen else "is not there"
                said = f"checkpoint {number}, known from elsewhere, {there}"
                self.note(Fault(Kind.CHECKPOINT_CHAIN, said))

    def summary(self) -> Iterator[str]:
        """What was checked, and since when changes are not protected yet."""
        yield f"notices {self.notices}, rows {self.rows}, checkpoints {self.checkpoints}"
        if self.not_recomputed:
            yield f"heads not in this export: those of {self.not_recomputed} checkpoints"
        if self.last_checkpoint_at:
            yield f"last checkpoint {self._last_checkpoint[0]} of {self.last_checkpoint_at}"
        else:
            yield "no checkpoint: a tail that was removed together with its head is not seen"
        if self.uncovered_rows:
            yield (
                f"unprotected: {self.uncovered_rows} rows since {self.uncovered_since}"
                " are under no checkpoint yet"
            )
        yield f"faults {self.faults}" if self.faults else "all holds"


class _Heads:
    """The heads under one checkpoint, digested as they come."""

    def __init__(self) -> None:
        self.count = 0
        self._digest = hashlib.sha256()

    def add(self, anchor: Record) -> None:
        self.count += 1
        line = f"{anchor['notice_id']} {anchor['seq']} {anchor['hash']}\n"
        self._digest.update(line.encode())

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _notice_of(record: Record) -> str | None:
    return record["notice_id"] if record["kind"] in OF_A_NOTICE else None


def _distinct(faults: Iterable[Fault]) -> Iterator[Fault]:
    told = set()
    for fault in faults:
        if (fault.kind, fault.seq) not in told:
            told.add((fault.kind, fault.seq))
            yield fault


# --- one notice


def row_hash(row: Record, seq: int | None = None) -> str:
    """The hash that a row must have, after the previous hash that it names."""
    values = [seq if seq and name == "seq" else row[name] for name in HASHED]
    for place, name in enumerate(HASHED):
        if name in TIMES:
            values[place] = _microseconds(row[name])
    content = b"".join(_field(value) for value in values)
    return hashlib.sha256(bytes.fromhex(row["prev_hash"]) + content).hexdigest()


def _field(value: object) -> bytes:
    if value is None:
        return b"-,"
    text = str(value).encode()
    return b"%d:%b," % (len(text), text)


def _microseconds(written: str) -> int:
    return (datetime.fromisoformat(written) - EPOCH) // timedelta(microseconds=1)


def _chain_faults(
    notice_id: str, rows: list[Record], stored: Record | None, anchors: list[Record]
) -> Iterator[Fault]:
    def fault(kind: Kind, seq: int, detail: str) -> Fault:
        return Fault(kind, detail, notice_id, seq)

    if not rows:
        yield fault(Kind.MISSING, 1, "the whole chain is gone")
        return
    before, last_seq, sound_before = hashlib.sha256(notice_id.encode()).hexdigest(), 0, True
    for place, row in enumerate(rows):
        seq, sound = row["seq"], True
        if seq > last_seq + 1:
            for gone in range(last_seq + 1, seq):
                yield fault(Kind.MISSING, gone, "is not there")
        elif seq <= last_seq:
            yield fault(Kind.REORDERED, seq, f"stands after row {last_seq}")
        if row_hash(row) != row["hash"]:
            sound = False
            yield _misfit(fault, row, len(rows))
        if sound_before and seq == last_seq + 1 and row["prev_hash"] != before:
            yield from _broken_link(fault, rows, place, sound=sound)
        before, last_seq, sound_before = row["hash"], seq, sound
    yield from _end_faults(fault, rows, stored)
    yield from _anchor_faults(fault, rows, anchors)


MakeFault = Callable[[Kind, int, str], Fault]


def _misfit(fault: MakeFault, row: Record, length: int) -> Fault:
    """The row is not what was hashed: it stood elsewhere, or said something else."""
    for seq in range(1, length + 2):
        if seq != row["seq"] and row_hash(row, seq) == row["hash"]:
            return fault(Kind.REORDERED, row["seq"], f"was written as row {seq}")
    return fault(Kind.ALTERED, row["seq"], "is not what was written")


def _broken_link(
    fault: MakeFault, rows: list[Record], place: int, *, sound: bool
) -> Iterator[Fault]:
    """The row was hashed on another than the one before it; which of the two is at fault."""
    row = rows[place]
    if place == 0:
        yield fault(Kind.ALTERED, row["seq"], "does not begin the chain of this notice")
        return
    first = hashlib.sha256(row["notice_id"].encode()).hexdigest()
    neighbour, earlier = rows[place - 1], rows[place - 2]["hash"] if place > 1 else first
    if row["prev_hash"] == earlier:
        yield fault(Kind.INSERTED, neighbour["seq"], "the row after it knows nothing of it")
    elif sound and any(row["prev_hash"] == each["hash"] for each in rows):
        yield fault(Kind.REORDERED, row["seq"], "was written after another row than this one")
    elif sound:
        said = "is not the row that the next one was hashed on"
        yield fault(Kind.ALTERED, neighbour["seq"], said)


def _end_faults(fault: MakeFault, rows: list[Record], stored: Record | None) -> Iterator[Fault]:
    last = rows[-1]
    if stored is None or stored["seq"] is None:
        yield fault(Kind.HEAD_MISMATCH, last["seq"], "the notice that holds the head is gone")
    elif stored["seq"] > last["seq"]:
        said = f"the chain ends here, its head is row {stored['seq']}"
        yield fault(Kind.TRUNCATED, last["seq"], said)
    elif stored["hash"] != last["hash"]:
        inside = any(stored["hash"] == row["hash"] for row in rows)
        kind = Kind.INSERTED if inside else Kind.HEAD_MISMATCH
        yield fault(kind, last["seq"], f"the head is that of row {stored['seq']}")
    elif stored["seq"] != last["seq"]:
        yield fault(Kind.HEAD_MISMATCH, last["seq"], f"the head says row {stored['seq']}")
    if stored is not None and not stored["admitted"]:
        yield fault(Kind.MISSING, 0, "the admission is gone")


def _anchor_faults(fault: MakeFault, rows: list[Record], anchors: list[Record]) -> Iterator[Fault]:
    hashes = {row["seq"]: row["hash"] for row in rows}
    for anchor in anchors:
        seq, sealed_by = anchor["seq"], f"checkpoint {anchor['checkpoint']}"
        if seq > rows[-1]["seq"]:
            said = f"{sealed_by} sealed row {seq}"
            yield fault(Kind.TRUNCATED, rows[-1]["seq"], said)
        elif seq in hashes and hashes[seq] != anchor["hash"]:
            yield fault(Kind.ALTERED, seq, f"is not the row that {sealed_by} sealed")


# --- checkpoints


def _checkpoint_faults(
    record: Record, last: tuple[int, str], heads: _Heads | None, keys: Mapping[str, bytes]
) -> Iterator[Fault]:
    number = record["number"]
    if number != last[0] + 1:
        said = f"checkpoint {number} follows {last[0]}"
        yield Fault(Kind.CHECKPOINT_CHAIN, said)
    elif record["previous"] != last[1]:
        yield Fault(Kind.CHECKPOINT_CHAIN, f"checkpoint {number} was made after another one")
    if heads and (heads.count, heads.hexdigest()) != (record["heads"], record["heads_sha256"]):
        yield Fault(Kind.CHECKPOINT_CHAIN, f"checkpoint {number} sealed other heads")
    signed, signature = signed_text(record), bytes.fromhex(record["signature"])
    if hashlib.sha256(signed + signature).hexdigest() != record["hash"]:
        yield Fault(Kind.CHECKPOINT_CHAIN, f"checkpoint {number} is not what was hashed")
    if problem := _signature_problem(keys.get(record["key_id"]), signature, signed):
        yield Fault(Kind.SIGNATURE, f"checkpoint {number}: {problem} (key {record['key_id']})")


def signed_text(record: Record) -> bytes:
    """What a checkpoint's signature is over."""
    lines = ["notifier-checkpoint-1", *(f"{name}={record[name]}" for name in SIGNED)]
    return "\n".join(lines).encode()


def _signature_problem(key: bytes | None, signature: bytes, signed: bytes) -> str:
    if key is None:
        return "its key is not known"
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)
    except InvalidSignature:
        return "the signature is not of this key"
    return ""


def key_id_of(public_key: bytes) -> str:
    """The name of a public key: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(public_key).hexdigest()[:16]


# --- the file


class Export:
    """An export's lines as they are read; `header` is known before the first record."""

    def __init__(self, lines: Iterable[bytes], tell: OnFault) -> None:
        self._lines = iter(lines)
        self._tell = tell
        self._digest = hashlib.sha256()
        self._manifest: Record | None = None
        self._counts: dict[str, int] = dict.fromkeys(FIELDS, 0)
        self.header = self._next()
        if self.header is None or self.header["kind"] != "export" or self.header["format"] != 1:
            raise Unreadable("the first line is not that of an export of format 1")

    @property
    def is_partial(self) -> bool:
        """Whether only some notices were asked for."""
        return bool(self.header and self.header["scope"] != "all")

    def records(self) -> Iterator[Record]:
        """Everything between the first line and the manifest, which is checked on the way."""
        before = self._digest.hexdigest()
        while record := self._next():
            if self._manifest:
                raise Unreadable("something stands after the manifest")
            if record["kind"] == "manifest":
                self._manifest = record
                self._check_manifest(record, before)
            else:
                self._counts[record["kind"]] += 1
                yield record
            before = self._digest.hexdigest()
        if self._manifest is None:
            self._tell(Fault(Kind.FILE, "it ends without its manifest: something was cut off"))

    def _next(self) -> Record | None:
        line = next(self._lines, None)
        if line is None:
            return None
        self._digest.update(line)
        try:
            record: Record = json.loads(line)
            if set(record) != FIELDS[record["kind"]]:
                raise Unreadable("a record has other fields than its kind has")
        except (ValueError, TypeError, KeyError):
            raise Unreadable("a line is no record of an export") from None
        return record

    def _check_manifest(self, manifest: Record, digest: str) -> None:
        if manifest["sha256"] != digest:
            self._tell(Fault(Kind.FILE, "the manifest's SHA-256 is that of another content"))
        for name, kind in (("rows", "transition"), ("checkpoints", "checkpoint")):
            if manifest[name] != self._counts[kind]:
                said = f"{self._counts[kind]} {name}, the manifest says {manifest[name]}"
                self._tell(Fault(Kind.FILE, said))


def verify_file(
    lines: Iterable[bytes],
    tell: OnFault,
    public_keys: Iterable[bytes] = (),
    expected: Mapping[int, str] | None = None,
) -> Verifier:
    """Check an export line by line; raises `Unreadable`. Without `public_keys`: the file's own."""
    faults: list[Fault] = []
    export = Export(lines, faults.append)
    given = [*public_keys]
    named = (export.header or {})["keys"].values()
    keys = {key_id_of(key): key for key in given or map(bytes.fromhex, named)}
    verifier = Verifier(keys, tell, expected or {}, partial=export.is_partial)
    try:
        verifier.run(export.records())
    except (ValueError, TypeError, KeyError):
        raise Unreadable("a field is not of its kind") from None
    for fault in faults:
        verifier.note(fault)
    return verifier


def expectation(text: str) -> tuple[int, str]:
    """`NUMBER:DIGEST` of a checkpoint, as the log line has them; ValueError otherwise."""
    number, _, digest = text.partition(":")
    if len(bytes.fromhex(digest)) != 32:
        raise ValueError("a digest has 64 hex digits")
    return int(number), digest.lower()


def main(arguments: list[str] | None = None) -> int:
    """The command line; the exit status."""
    parser = argparse.ArgumentParser(description="Check an export of the trail.")
    parser.add_argument("export", help="the file that was exported")
    parser.add_argument(
        "--public-key", action="append", default=[], type=bytes.fromhex, metavar="HEX",
        help="a key that may have signed; without one, those that the file itself names count",
    )  # fmt: skip
    parser.add_argument(
        "--expect", action="append", default=[], type=expectation, metavar="NUMBER:DIGEST",
        help="a checkpoint that has to be there, as a log entry trail_checkpoint has it",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    out = sys.stdout
    try:
        with open(given.export, "rb") as lines:  # noqa: PTH123 - one file, few imports
            verifier = verify_file(
                lines, lambda fault: _say(out, fault), given.public_key, dict(given.expect)
            )
    except (Unreadable, OSError) as error:
        _say(sys.stderr, f"cannot be checked: {error}")
        return 2
    for line in verifier.summary():
        _say(out, line)
    if not given.public_key:
        _say(out, "signatures were checked with the keys that the file itself names")
    return 1 if verifier.faults else 0


def _say(out: TextIO, line: object) -> None:
    out.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
