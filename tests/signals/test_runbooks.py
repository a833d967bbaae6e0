"""Each rule has a runbook, and what a runbook names exists: pages, commands, settings, values."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from flask import Flask
from werkzeug.exceptions import NotFound
from werkzeug.routing import MapAdapter

from notifier import cli
from notifier.domain.policy_alerts import ALERT_DEFAULTS
from notifier.settings import PREFIX, Settings, load_settings
from notifier.signals.judgements import RuleName
from notifier.signals.rule_words import TITLES, page_of, runbook_of
from notifier.store.database import Database
from notifier.web.people.policy_words import words_of as words_of_value
from notifier.web.people.runbooks import FOLDER, Kind, Piece, blocks, read_runbook
from peers.run_settings import Secrets, mail_only
from tests.people_pages import build_app

HEADINGS = [
    "Look here first", "Likely causes", "What to do", "It is over when", "When to tune it",
]  # fmt: skip
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


def text_of(rule: RuleName) -> str:
    return (FOLDER / f"{rule}.md").read_text()


def words_of(rule: RuleName) -> list[str]:
    return re.findall(r"`([^`]+)`", text_of(rule))


@pytest.fixture(scope="module")
def pages() -> MapAdapter:
    """The addresses of the pages for people; no database is asked."""
    return build_app(Database(NOWHERE)).url_map.bind("notices.example.com")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """The product's commands, as `flask` has them."""
    folder: Path = tmp_path_factory.mktemp("settings")
    known = Secrets.load(folder / "secrets.json")
    given = mail_only(
        known, data_dir=folder, port=1, link_url="http://127.0.0.1:1/links", smtp_port=1
    )
    app = Flask("commands")
    cli.install(app, load_settings(given), NOWHERE, tuple)
    return app


def leads_somewhere(pages: MapAdapter, path: str) -> bool:
    try:
        pages.match(path.partition("?")[0])
    except NotFound:
        return False
    return True


def test_every_rule_has_a_runbook_and_every_runbook_a_rule() -> None:
    assert {each.stem for each in FOLDER.glob("*.md")} == set(RuleName)


@pytest.mark.parametrize("rule", RuleName)
def test_a_runbook_has_its_title_and_its_parts_and_is_short(rule: RuleName) -> None:
    title, *rest = read_runbook(rule)
    assert title.lines == ((Piece(TITLES[rule]),),)
    assert [each.lines[0][0].text for each in rest if each.kind is Kind.HEADING] == HEADINGS
    assert len(text_of(rule).splitlines()) < 45


@pytest.mark.parametrize("rule", RuleName)
def test_a_page_leads_to_pages_that_exist(rule: RuleName, pages: MapAdapter) -> None:
    paths = re.findall(r"\]\((/[^)]*)\)", text_of(rule))
    assert paths
    assert all(leads_somewhere(pages, each) for each in paths), paths
    assert leads_somewhere(pages, page_of(rule, "postmark"))
    assert leads_somewhere(pages, runbook_of(rule))
    assert page_of(rule, "postmark").partition("?")[0] in {each.partition("?")[0] for each in paths}


@pytest.mark.parametrize("rule", RuleName)
def test_a_runbook_names_only_commands_that_there_are(rule: RuleName, commands: Flask) -> None:
    for line in (each for each in words_of(rule) if each.startswith("flask ")):
        found: click.Command = commands.cli
        words = line.split()[1:]
        if words[:2] == ["db", "upgrade"]:
            continue
        while isinstance(found, click.Group):
            assert words[0] in found.commands, line
            found = found.commands[words.pop(0)]
        options = {each for param in found.params for each in param.opts}
        named = {each for each in words if each.startswith("--")}
        assert named <= options, line


@pytest.mark.parametrize("rule", RuleName)
def test_a_runbook_names_only_values_and_settings_that_there_are(rule: RuleName) -> None:
    for word in words_of(rule):
        if word.startswith("alert."):
            assert word.removeprefix("alert.") in ALERT_DEFAULTS, word
        if word.startswith(PREFIX):
            name = word.partition("=")[0].removeprefix(PREFIX).lower()
            assert name in Settings.model_fields, word


@pytest.mark.parametrize("rule", RuleName)
def test_a_runbook_names_a_value_by_its_label_too_and_shows_no_bare_asterisk(
    rule: RuleName,
) -> None:
    text = text_of(rule)
    for value in re.findall(r"`alert\.(\w+)`", text):
        assert f"**{words_of_value(f'alert/{value}').label}** (`alert.{value}`)" in text
    shown = (each for block in read_runbook(rule) for line in block.lines for each in line)
    assert not [each.text for each in shown if "*" in each.text]


def test_a_runbook_is_read_as_blocks_with_code_and_links() -> None:
    [title, text, points] = blocks("# One\n\nSee [Home](/) and\n`code`.\n\n- a\n- `b`\n")
    assert (title.kind, text.kind, points.kind) == (Kind.TITLE, Kind.TEXT, Kind.POINTS)
    assert text.lines == (
        (Piece("See "), Piece("Home", path="/"), Piece(" and "), Piece("code", is_code=True),
         Piece(".")),
    )  # fmt: skip
    assert points.lines == ((Piece("a"),), (Piece("b", is_code=True),))
