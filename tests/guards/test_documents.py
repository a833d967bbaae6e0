"""The reference pages say what the code says."""

from __future__ import annotations

import re

import pytest

from notifier.domain.reasons import Reason
from notifier.domain.states import MOVES, DeliveryState
from tests.guards.documents import MEANINGS, PAGES, ROOT, states_page
from tests.guards.mutants import GUARDS


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_the_one_that_the_code_gives(page: str) -> None:
    written = (ROOT / page).read_text(encoding="utf-8")
    assert written == PAGES[page](), "write it anew: python -m tests.guards.documents"


def test_every_state_and_every_move_stands_on_the_page() -> None:
    page = states_page()
    assert set(MEANINGS) == set(DeliveryState)
    assert page.count("\n| ") == 2 + 2 + len(DeliveryState) + len(MOVES)
    moving = {reason for reasons in MOVES.values() for reason in reasons}
    assert all(f"`{reason}`" in page for reason in moving)
    assert len(moving) < len(Reason)


def test_every_test_that_stands_beside_a_known_way_to_fail_exists() -> None:
    page = (ROOT / "docs/reference/cases.md").read_text(encoding="utf-8")
    cases = re.findall(r"^\| (B\d{3}) \|", page, re.MULTILINE)
    assert len(cases) == len(set(cases)) > 50
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) == page.count("::")
    missing = [
        f"{file}::{name}"
        for file, name in named
        if f"\ndef {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_test_that_watches_a_guard_exists() -> None:
    for guard in GUARDS:
        file, _, name = guard.test.partition("::")
        bare = name.partition("[")[0]
        assert f"\ndef {bare}(" in (ROOT / file).read_text(encoding="utf-8"), guard.test
