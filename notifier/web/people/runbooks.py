"""The runbook of a rule, out of the documentation that the product comes with.

A small part of Markdown is read: headings, paragraphs, lists, fenced commands; in a line code,
strong words and links. Everything else stays the text it is, and the template escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Read
from notifier.signals.judgements import BY_THEMSELVES, RuleName
from notifier.signals.rule_words import TITLES, runbook_of
from notifier.web.people.refusals import hour_for
from notifier.web.people.visit import needs, services, write_down

FOLDER: Final = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "runbooks"

_FENCE: Final = "```"
_INLINE: Final = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"(#{1,4})\s+(.+)")
_ITEM: Final = re.compile(r"(?:[-*]|(\d{1,2})\.)\s+(.+)")
_HERE: Final = re.compile(r"/(?![/\\])[^\\]*")
_OTHER: Final = re.compile(r"(?:\./)?([a-z_]+)\.md")


class Kind(StrEnum):
    """What a block is."""

    TITLE = "title"
    HEADING = "heading"
    TEXT = "text"
    POINTS = "points"
    STEPS = "steps"
    COMMANDS = "commands"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a line; a `path` makes it a link."""

    text: str
    path: str | None = None
    is_code: bool = False
    is_strong: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One block with its lines or items."""

    kind: Kind
    lines: tuple[tuple[Piece, ...], ...]


@dataclass(frozen=True, slots=True)
class Runbook:
    """The title of its rule, and the text under it."""

    title: str
    blocks: list[Block]


@needs(Permission.VIEW_ALERTS)
def runbooks() -> ResponseReturnValue:
    """Every runbook by its rule's title."""
    listed = [(TITLES[rule], rule) for rule in RuleName]
    with services().database.connection() as connection:
        write_down(connection, Read("list", "runbooks", None, len(listed)))
    return render_template("pages/runbooks.html", listed=listed, runbook_of=runbook_of)


@needs(Permission.VIEW_ALERTS)
def runbook(rule: str) -> ResponseReturnValue:
    """What to do about an alert of this rule."""
    if rule not in set(RuleName):
        raise NotFound
    named = RuleName(rule)
    found = _without_title(named)
    now = services().now()
    with services().database.connection() as connection:
        refused = hour_for(rule, connection, now)
        write_down(connection, Read("view", "runbook", rule, len(found)))
    return render_template(
        "pages/runbook.html", rule=rule, title=TITLES[named], blocks=found, refused=refused,
        has_alerts=named not in BY_THEMSELVES,
    )  # fmt: skip


def runbook_asked_for() -> Runbook | None:
    """The runbook that this request's address names, from its file alone; None for other pages.

    It is what the product comes with and holds nothing of anybody, so it may be shown while
    nobody can be asked who reads it.
    """
    rule = (request.view_args or {}).get("rule", "")
    if request.endpoint != "people.runbook" or rule not in set(RuleName):
        return None
    named = RuleName(rule)
    return Runbook(TITLES[named], _without_title(named))


def _without_title(rule: RuleName) -> list[Block]:
    return [each for each in read_runbook(rule) if each.kind is not Kind.TITLE]


def read_runbook(rule: RuleName) -> list[Block]:
    """The blocks of a rule's runbook; none where it has none."""
    path = FOLDER / f"{rule}.md"
    return blocks(path.read_text(encoding="utf-8")) if path.is_file() else []


def blocks(text: str) -> list[Block]:
    """The blocks of a text."""
    return list(_blocks(iter(text.replace("\r\n", "\n").split("\n"))))


def pieces(text: str) -> tuple[Piece, ...]:
    """A line in its pieces."""
    return tuple(_pieces(text))


def _blocks(lines: Iterator[str]) -> Iterator[Block]:
    held: list[str] = []
    kind = Kind.TEXT
    for line in lines:
        tidy = line.strip()
        heading, item = _HEADING.fullmatch(tidy), _ITEM.match(tidy)
        if not tidy or heading or tidy.startswith(_FENCE):
            yield from _block(kind, held)
            held, kind = [], Kind.TEXT
            if heading:
                level = Kind.TITLE if len(heading[1]) == 1 else Kind.HEADING
                yield Block(level, (pieces(heading[2]),))
            elif tidy:
                yield Block(Kind.COMMANDS, tuple(_commands(lines)))
        elif item:
            wanted = Kind.STEPS if item[1] else Kind.POINTS
            if kind is not wanted:
                yield from _block(kind, held)
                held, kind = [], wanted
            held.append(item[2])
        elif held and kind is not Kind.TEXT:
            held[-1] += f" {tidy}"
        else:
            held.append(tidy)
    yield from _block(kind, held)


def _block(kind: Kind, held: list[str]) -> Iterator[Block]:
    if held:
        lines = [" ".join(held)] if kind is Kind.TEXT else held
        yield Block(kind, tuple(map(pieces, lines)))


def _commands(lines: Iterator[str]) -> Iterator[tuple[Piece, ...]]:
    for line in lines:
        if line.strip().startswith(_FENCE):
            return
        if line.strip():
            yield (Piece(line.strip(), is_code=True),)


def _pieces(text: str) -> Iterator[Piece]:
    end = 0
    for found in _INLINE.finditer(text):
        if found.start() > end:
            yield Piece(text[end : found.start()])
        end = found.end()
        if found[1]:
            yield Piece(found[1], is_code=True)
        elif found[2]:
            yield Piece(found[2], is_strong=True)
        else:
            yield _link(found[3], found[4])
    if end < len(text):
        yield Piece(text[end:])


def _link(text: str, target: str) -> Piece:
    """A link to a page of ours or to another runbook; elsewhere no page leads."""
    if _HERE.fullmatch(target):
        return Piece(text, target)
    if other := _OTHER.fullmatch(target):
        return Piece(text, f"/runbooks/{other[1]}")
    return Piece(f"{text} ({target})")


def add_runbooks(blueprint: Blueprint) -> None:
    """Put the pages at their address."""
    blueprint.add_url_rule("/runbooks", view_func=runbooks)
    blueprint.add_url_rule("/runbooks/<id:rule>", view_func=runbook)
