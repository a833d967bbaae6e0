"""What `flask --help` and `flask COMMAND --help` say, on a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from flask import Flask

from notifier import cli
from notifier.flow import halts
from notifier.flow.halts import SCOPE, SCOPE_FORMS
from notifier.settings import load_settings
from peers.run_settings import Secrets, mail_only

COLUMNS = {"COLUMNS": "80"}
EXAMPLES = (
    "all", "channel:sms", "provider:smtp", "template:password-reset@1", "account:ID", "event:ID",
)  # fmt: skip


@pytest.fixture
def app(tmp_path: Path) -> Flask:
    made = Flask("commands")
    given = mail_only(
        Secrets.load(tmp_path / "secrets.json"), data_dir=tmp_path, port=1,
        link_url="http://127.0.0.1:1/links", smtp_port=1,
    )  # fmt: skip
    cli.install(made, load_settings(given), "postgresql://127.0.0.1:1/none", tuple)
    return made


def groups_of(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Group]]:
    """A group of commands and all below it, by the words that lead there."""
    yield path, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from groups_of(command, *path, name)


def told(app: Flask, *words: str) -> str:
    done = app.test_cli_runner(env=COLUMNS).invoke(args=[*words, "--help"])
    assert done.exit_code == 0, done.output
    return done.output


def listed(group: click.Group) -> dict[str, str]:
    """The line beside each command of a group."""
    page = CliRunner(env=COLUMNS).invoke(group, ["--help"]).output.split("Commands:\n")[1]
    return dict(line.split(None, 1) for line in page.splitlines() if line.strip())


def test_every_command_is_listed_with_one_whole_sentence(app: Flask) -> None:
    seen = []
    for path, group in groups_of(app.cli):
        for name, line in listed(group).items():
            seen.append(" ".join((*path, name)))
            assert line[0].isupper(), (path, name, line)
            assert line.endswith("."), (path, name, line)
            assert "..." not in line, (path, name, line)
    assert {"halt", "release", "halts", "doctor", "rehearse", "trail", "users"} <= set(seen)
    assert {"trail verify", "trail export", "trail rebuild", "users add", "users list"} <= set(seen)


def test_the_help_of_halt_and_release_tells_every_scope_and_how_it_is_written(app: Flask) -> None:
    for command in ("halt", "release"):
        page = told(app, command)
        for example in EXAMPLES:
            assert SCOPE.fullmatch(example), example
            assert f"\n    {example} " in page, page
        assert max(map(len, page.splitlines())) <= 80


def test_the_example_in_the_help_is_one_that_can_be_typed(app: Flask) -> None:
    for command in ("halt", "release"):
        [line] = [each for each in told(app, command).splitlines() if f"  flask {command} " in each]
        _, _, scope, option, reason = line.split(None, 4)
        assert option == "--reason"
        halts.check(scope, reason.strip('"'))


def test_each_form_that_a_refusal_names_stands_in_the_help(app: Flask) -> None:
    kinds = {form.partition(":")[0] for form in SCOPE_FORMS.replace(" or ", ", ").split(", ")}
    page = told(app, "halt")
    assert all(f"\n    {kind}" in page for kind in kinds), page
    assert {each.partition(":")[0] for each in EXAMPLES} == kinds


@pytest.mark.parametrize("reason", ["ask jana.moe@mail.example", "call 07700/900/123", "a" * 501])
def test_a_reason_that_cannot_be_kept_is_refused_by_its_name_and_not_repeated(
    app: Flask, reason: str
) -> None:
    for command in ("halt", "release"):
        done = app.test_cli_runner().invoke(args=[command, "all", "--reason", reason])
        assert done.exit_code == 2
        assert "the reason " in done.output
        assert reason not in done.output
