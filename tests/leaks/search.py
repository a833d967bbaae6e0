"""Looks for needles in whatever a run left behind."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.leaks.canaries import Needle

AROUND = 48
EMPTY_SPACE = re.compile(rb"\0{16,}")
"""Most of a database's pages; nothing that is searched for has such a run."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """Bytes that somebody who should not know a secret could read."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """One place where a needle was found."""

    where: str
    needle: Needle
    around: bytes

    def __str__(self) -> str:
        return f"{self.needle.label} ({self.needle.form}) in {self.where}: ...{self.around!r}..."


def find(needles: Iterable[Needle], haystacks: Iterable[Haystack]) -> list[Found]:
    """The first place of each needle in each haystack; case does not matter."""
    wanted = list(needles)
    found = []
    for stack in haystacks:
        small = stack.content.lower()
        for needle in wanted:
            at = small.find(needle.content)
            if at >= 0:
                around = stack.content[max(at - AROUND, 0) : at + len(needle.content) + AROUND]
                found.append(Found(stack.name, needle, around))
    return found


def files(folder: Path, *, but: Iterable[Path] = ()) -> Iterator[Haystack]:
    """Every file below a folder with its name; equal contents (databases' copies) once."""
    left_out, seen = set(but), set[bytes]()
    for path in sorted(folder.rglob("*")):
        if path in left_out or path.is_symlink() or not path.is_file():
            continue
        content = EMPTY_SPACE.sub(b"\0", path.read_bytes())
        digest = hashlib.sha256(content).digest()
        if digest not in seen:
            seen.add(digest)
            yield Haystack(str(path.relative_to(folder)), content)
        yield Haystack("a file's name", str(path.relative_to(folder)).encode())


def told(found: Iterable[Found], most: int = 30) -> str:
    """The finds as a list to read."""
    lines = [str(each) for each in found]
    return "\n".join(
        lines[:most] + ([f"and {len(lines) - most} more"] if len(lines) > most else [])
    )
