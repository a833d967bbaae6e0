"""Tells a rehearsal as the notice page tells a notice; two of them side by side.

The words are handed in, because they are the page's own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final

from notifier.domain.policy import Policy
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel
from notifier.rehearsal.acts import REQUESTED_AT, Rehearsed
from notifier.rehearsal.checking import starts, words
from notifier.rehearsal.notice import Row

INDENT: Final = "        "
_TOLD_LATE: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Phrases:
    """The page's words: a step's sentence, many looks in one, a state, a span of time."""

    sentence: Callable[[str, str | None, str | None], str]
    looked: Callable[[int, str | None], str]
    state: Callable[[str], str]
    span: Callable[[timedelta], str]
    left: Callable[[timedelta], str]


@dataclass(frozen=True, slots=True)
class Line:
    """One step. `key` is what makes it the same step in another rehearsal."""

    head: str
    sentence: str
    key: tuple[object, ...]


def lines(rehearsed: Rehearsed, phrases: Phrases) -> list[Line]:
    """Every step in the order in which things happened."""
    rows = sorted(rehearsed.trail, key=lambda row: row.occurred_at or row.at)
    return [_line(run, phrases) for run in _runs(rows)]


def _runs(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows, looks in vain that only repeat each other in one list."""
    runs: list[list[Row]] = []
    for row in rows:
        last = runs[-1][-1] if runs else None
        looked = row.reason is Reason.LOOKED_NOT_FOUND
        if last and looked and (last.reason, last.channel) == (row.reason, row.channel):
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _line(run: Sequence[Row], phrases: Phrases) -> Line:
    row = run[0]
    at = row.occurred_at or row.at
    head = f"T+{phrases.span(at - REQUESTED_AT):<7} {phrases.left(row.remaining + (row.at - at))}"
    sentence = phrases.sentence(row.reason, row.channel, row.to_state)
    if len(run) > 1:
        sentence = phrases.looked(len(run), row.channel)
    if row.detail:
        sentence += f" ({row.detail.replace('_', ' ')})"
    if row.at - at >= _TOLD_LATE:
        sentence += f" We were told {phrases.span(row.at - at)} later."
    key = (at, len(run), row.channel, row.from_state, row.to_state, row.reason, row.detail)
    return Line(f"{head:<22}{_moved(row, phrases)}", sentence, key)


def _moved(row: Row, phrases: Phrases) -> str:
    name = row.channel or "notice"
    if row.to_state is None or row.from_state is row.to_state:
        return f"{name}: noted"
    was = phrases.state(row.from_state) if row.from_state else "new"
    return f"{name}: {was} -> {phrases.state(row.to_state)}"


def ending(rehearsed: Rehearsed) -> Mapping[str, str]:
    """How it ended, and what an agent then reads, by what it is called."""
    notice, told = rehearsed.notice, words(rehearsed)
    basis = f", basis {notice.basis}" if notice.basis else ""
    return {
        "ended as": f"{notice.state.replace('_', ' ')}{basis}",
        "support word": str(told.support_word),
        "headline": told.headline,
        "customer": told.customer_action,
        "emails started": str(starts(rehearsed, Channel.EMAIL)),
        "texts started": str(starts(rehearsed, Channel.SMS)),
    }


def timeline(rehearsed: Rehearsed, phrases: Phrases, width: int) -> Iterator[str]:
    """One rehearsal, line by line."""
    for line in lines(rehearsed, phrases):
        yield from _cell(line, width)
    yield ""
    for name, said in ending(rehearsed).items():
        yield from textwrap.wrap(f"{name + ':':<16}{said}", width, subsequent_indent=" " * 16)


def _cell(line: Line | None, width: int) -> list[str]:
    if line is None:
        return []
    head = textwrap.wrap(line.head, width, subsequent_indent=INDENT)
    told = textwrap.wrap(line.sentence, width, initial_indent=INDENT, subsequent_indent=INDENT)
    return [*head, *told]


def side_by_side(today: Rehearsed, draft: Rehearsed, phrases: Phrases, width: int) -> Iterator[str]:
    """Both in columns; a row in which they differ begins with an exclamation mark."""
    column = (width - 5) // 2
    yield from _joined(["TODAY"], ["DRAFT"], column, differs=False)
    for left, right, differs in _paired(lines(today, phrases), lines(draft, phrases)):
        yield from _joined(_cell(left, column), _cell(right, column), column, differs=differs)
    yield ""
    before, after = ending(today), ending(draft)
    for name in before:
        was, then = (textwrap.wrap(f"{name}: {each[name]}", column) for each in (before, after))
        yield from _joined(was, then, column, differs=before[name] != after[name])


def _paired(
    before: Sequence[Line], after: Sequence[Line]
) -> Iterator[tuple[Line | None, Line | None, bool]]:
    one, other = ([line.key for line in each] for each in (before, after))
    matcher = SequenceMatcher(a=one, b=other, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        for left, right in zip_longest(before[i:j], after[k:m]):
            yield left, right, tag != "equal"


def _joined(
    left: Sequence[str], right: Sequence[str], column: int, *, differs: bool
) -> Iterator[str]:
    mark = "!" if differs else " "
    for one, other in zip_longest(left, right, fillvalue=""):
        yield f"{mark} {one:<{column}} | {other}".rstrip()


def changed_values(today: Policy, draft: Policy) -> Iterator[str]:
    """Every value of the policy that differs, `key: today -> draft`."""
    before, after = _flat(today.to_document()), _flat(draft.to_document())
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield f"{key}: {_said(before.get(key))} -> {_said(after.get(key))}"


def _said(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": each for name, each in value.items()}
        else:
            flat[key] = value
    return flat
