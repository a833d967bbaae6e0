"""`flask --help` is about the product, and `flask tokens new` makes what the settings take."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from notifier.settings import load_settings
from notifier.web.services import Scope, find_token
from peers.run_settings import Secrets, mail_only
from setup.gates import ROOT

OURS = ["doctor", "halt", "halts", "rehearse", "release", "tokens", "trail", "users"]


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    return mail_only(
        Secrets.load(tmp_path / "secrets.json"), data_dir=tmp_path, port=1,
        link_url="http://127.0.0.1:1/links", smtp_port=1,
    ) | {"NOTIFIER_DATABASE_URL": database_url}  # fmt: skip


def flask(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flask", *arguments],
        cwd=ROOT,
        env=os.environ | environment | {"COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def listed(page: str) -> list[str]:
    lines = page.split("Commands:\n")[1].splitlines()
    return [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]


def test_the_help_opens_with_the_products_sentence_and_lists_the_products_commands(
    environment: dict[str, str],
) -> None:
    page = flask(environment, "--help")
    assert page.returncode == 0, page.stderr
    usage, _, rest = page.stdout.partition("\n\n")
    assert usage.startswith("Usage: ")
    assert rest.lstrip().startswith("Reset notices: tell a person once")
    assert "general utility script" not in page.stdout
    assert page.stdout.count("Usage: ") == page.stdout.count("Commands:\n") == 1
    assert listed(page.stdout) == [*OURS, "db"]
    assert flask(environment).stderr.partition("\n\n")[2].split() == rest.split()


def test_of_the_migrations_only_what_an_operator_needs_is_listed(
    environment: dict[str, str],
) -> None:
    page = flask(environment, "db", "--help")
    assert listed(page.stdout) == ["current", "history", "upgrade"]


@pytest.mark.parametrize("command", ["run", "shell", "routes", "db stamp"])
def test_what_is_not_listed_is_still_there(environment: dict[str, str], command: str) -> None:
    assert flask(environment, *command.split(), "--help").returncode == 0


def test_a_new_token_is_told_once_and_its_entry_is_one_that_the_settings_take(
    environment: dict[str, str],
) -> None:
    made = flask(
        environment, "tokens", "new", "help-desk", "--scope", "status", "--scope", "tickets"
    )
    again = flask(environment, "tokens", "new", "help-desk", "--scope", "status")
    assert made.returncode == 0, made.stderr
    token, entry = (line.split()[-1] for line in made.stdout.splitlines()[:2])

    taken = load_settings(environment | {"NOTIFIER_API_TOKENS": entry}).api_tokens

    found = find_token(taken, token)
    assert found is not None
    assert found.name == "help-desk"
    assert found.scopes == {Scope.STATUS, Scope.TICKETS}
    assert entry.endswith(hashlib.sha256(token.encode()).hexdigest())
    assert len(token) >= 43
    assert token not in again.stdout


@pytest.mark.parametrize(
    "odd", [("desk:1", "--scope", "status"), ("desk", "--scope", "root"), ("desk",)]
)
def test_a_token_that_the_settings_would_refuse_is_not_made(
    environment: dict[str, str], odd: tuple[str, ...]
) -> None:
    done = flask(environment, "tokens", "new", *odd)
    assert (done.returncode, done.stdout) == (2, "")
