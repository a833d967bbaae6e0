"""Runbooks as pages: what the documentation says, and nothing that a browser would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notifier.signals.rule_words import TITLES
from notifier.web.people import runbooks
from notifier.web.people.runbooks import Piece, blocks, pieces

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.people_pages import Browser

TEXT = """# Ready work waits too long

What it means: **work waits**
and `queue_age` tells.

## What to do

1. Look at [pending](/pending?stage=waiting),
   the oldest first.
2. See [the other one](provider_paused.md).

- <script>alert(1)</script>
- [away](https://evil.example/), [trick](//evil.example), [run](javascript:alert(1))

```
flask halts
```
"""


def test_headings_steps_items_and_commands_are_told_apart() -> None:
    assert [(str(block.kind), len(block.lines)) for block in blocks(TEXT)] == [
        ("title", 1), ("text", 1), ("heading", 1), ("steps", 2), ("points", 2), ("commands", 1),
    ]  # fmt: skip


def test_a_line_is_read_in_its_pieces() -> None:
    assert pieces("a `b` **c** [d](/e)") == (
        Piece("a "), Piece("b", is_code=True), Piece(" "), Piece("c", is_strong=True),
        Piece(" "), Piece("d", "/e"),
    )  # fmt: skip


def test_no_link_leads_elsewhere() -> None:
    paths = {each.path for block in blocks(TEXT) for line in block.lines for each in line}
    assert paths == {None, "/pending?stage=waiting", "/runbooks/provider_paused"}


def test_a_runbook_is_shown_and_its_markup_stays_text(
    support: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue_age.md").write_text(TEXT)
    monkeypatch.setattr(runbooks, "FOLDER", tmp_path)
    page = support.get("/runbooks/queue_age").text
    assert "<strong>work waits</strong>" in page
    assert 'href="/pending?stage=waiting"' in page
    assert 'data-copy="flask halts"' in page
    assert "<script>alert" not in page


def test_a_rule_without_a_runbook_says_so_and_no_other_file_is_read(
    support: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runbooks, "FOLDER", tmp_path)
    (tmp_path / "secret.md").write_text("secret")
    assert "No runbook is written" in support.get("/runbooks/queue_age").text
    for name in ("secret", "..", "queue_age.md"):
        assert support.get(f"/runbooks/{name}").status_code == 404


def test_all_runbooks_are_listed_by_their_titles_and_the_alerts_lead_there(
    support: Browser,
) -> None:
    page = support.get("/runbooks").text
    for rule, title in TITLES.items():
        assert f'<a href="/runbooks/{rule}">{title}</a>' in page.replace("&#39;", "'")
    assert 'href="/runbooks"' in support.get("/alerts").text
