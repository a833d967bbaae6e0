"""Style sheets: small as they are served, and no rule in them that nothing uses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from notifier.web.people import blueprint
from notifier.web.people.sheets import narrow
from tests.people_pages import Browser

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 20_000
"""Bytes of all sheets of one page together, as they are served."""

SHEETS = sorted(blueprint.STATIC.glob("*.css"))
LINK = re.compile(r'<link rel="stylesheet" href="([^"]+)"')
RULES = re.compile(r"\{[^{}]*\}")
COMMENTS = re.compile(r"/\*.*?\*/", re.DOTALL)
CLASSES = re.compile(r"\.([a-z][a-z0-9-]*)")
COMPOSED = re.compile(r"([a-z]+-)\{\{")
"""The fixed part of a class that a template ends with a word."""

AT_HAND = {
    "choice", "danger", "diff", "filters", "form", "hint", "split", "wrong",
}  # fmt: skip
"""Components that the reference of page components offers, whether a page uses them yet or not."""


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        (
            "/* why */\n.a,\n.b > i { color: red; margin: 0 1px }\n",
            ".a,.b>i{color:red;margin:0 1px}",
        ),
        ('.a::after { content: " { ; } " }', '.a::after{content:" { ; } "}'),
        (".a :focus { top: calc(50% - 1px); }", ".a :focus{top:calc(50% - 1px)}"),
        ("@media (max-width: 40rem) and print {\n  .a { b: c }\n}", None),
    ],
)
def test_a_sheet_loses_room_and_no_meaning(sheet: str, expected: str | None) -> None:
    kept = "@media (max-width:40rem) and print{.a{b:c}}"
    assert narrow(sheet) == (expected or kept)


def weight(browser: Browser, link: str) -> int:
    with browser.get(link) as answer:
        return len(answer.data)


def test_no_page_links_more_than_its_share(support: Browser, notices: dict[str, UUID]) -> None:
    weights = {}
    for path in ("/", "/pending", "/failures", "/expired", "/incident", f"/n/{notices['failed']}"):
        links = LINK.findall(support.client.get(path, follow_redirects=True).text)
        assert links, path
        weights[path] = sum(weight(support, link) for link in links)
    assert max(weights.values()) <= LIMIT, weights


def words_of(folder: Path, pattern: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob(pattern))


def test_every_class_of_a_sheet_is_used_somewhere() -> None:
    pages = words_of(blueprint.ROOT / "templates", "*.html")
    pages += words_of(blueprint.ROOT / "notifier" / "web" / "people", "*.py")
    pages += words_of(blueprint.STATIC, "*.js")
    used = set(re.findall(r"[a-z][a-z0-9-]*", pages))
    begun = tuple(COMPOSED.findall(pages))
    for sheet in SHEETS:
        text = COMMENTS.sub("", sheet.read_text(encoding="utf-8"))
        named = set(CLASSES.findall(RULES.sub(" ", text)))
        unused = {each for each in named - used if not each.startswith(begun)}
        assert unused <= AT_HAND, sheet.name
