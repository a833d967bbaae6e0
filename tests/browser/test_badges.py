"""A badge and the words beside it stand on one line, wherever a page has both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.test_every_page import fill

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.browser.conftest import OpenPage

BASELINES = """
    () => {
        const pen = document.createElement("canvas").getContext("2d");
        const baseline = (text) => {
            const range = document.createRange();
            range.selectNodeContents(text);
            pen.font = getComputedStyle(text.parentElement).font;
            const descent = pen.measureText("x").fontBoundingBoxDescent;
            return range.getClientRects()[0]?.bottom - descent;
        };
        const texts = (root) => {
            const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
            const found = [];
            while (walk.nextNode()) if (walk.currentNode.data.trim()) found.push(walk.currentNode);
            return found;
        };
        return [...document.querySelectorAll("main .badge, main .lean b[class]")].flatMap((one) => {
            const [own] = texts(one);
            const all = texts(one.closest("p, li, td, dd") ?? one.parentElement);
            return [-1, 1]
                .map((side) => all[all.indexOf(own) + side])
                .filter(Boolean)
                .map((beside) => ({words: one.innerText, apart: baseline(own) - baseline(beside)}))
                .filter(({apart}) => Math.abs(apart) < 15);
        });
    }
"""
"""How far each badge's words stand below those beside it, in pixels; other lines are left out."""


@pytest.mark.parametrize("width", [1280, 375])
def test_a_badge_and_the_words_beside_it_stand_on_one_line(
    open_page: OpenPage, database: Database, width: int
) -> None:
    ids = fill(database)
    page, _ = open_page("otto", width)
    for path, least in (
        ("/", 2), ("/pending", 50), ("/expired", 2), ("/system", 3),
        (f"/n/{ids['expired_dead_link']}", 1),
    ):  # fmt: skip
        page.goto(path)
        found: list[dict[str, Any]] = page.evaluate(BASELINES)
        assert len(found) >= least, path
        assert [each for each in found if abs(each["apart"]) > 1] == [], path
