"""`flask users`, as an operator meets it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from notifier.accounts import people
from notifier.cli_users import users_commands
from tests.people_pages import PASSWORD, build_app, csrf_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from notifier.store.database import Database

    Run = Callable[..., Result]


@pytest.fixture
def run(database: Database) -> Run:
    commands = users_commands(lambda: database, lambda: "http://127.0.0.1:8000")

    def invoke(*words: str, line: str = "") -> Result:
        return CliRunner().invoke(commands, list(words), input=line)

    return invoke


def test_a_password_is_one_line_of_standard_input(run: Run, database: Database) -> None:
    done = run("add", "ada", "--role", "support", line=f"{PASSWORD}\nsecond line\n")
    assert done.exit_code == 0
    assert "link" not in done.output
    assert PASSWORD not in done.output
    with database.connection() as connection:
        assert people.who_signs_in(connection, "ada", PASSWORD)


def test_without_one_a_link_is_printed_that_lets_in_once(run: Run, database: Database) -> None:
    done = run("add", "ada", "--role", "on-call")
    found = re.search(r"http://127\.0\.0\.1:8000(/login/link/\S+)", done.output)
    assert done.exit_code == 0
    assert found
    client = build_app(database).test_client()
    token = csrf_token(client.get(found[1]).text)
    assert client.post(found[1], data={"csrf_token": token}).status_code == 303
    assert 'class="role">on-call<' in client.get("/").text


def test_a_fresh_link_replaces_the_one_before(run: Run, database: Database) -> None:
    first = re.search(r"/login/link/\S+", run("add", "ada", "--role", "admin").output)
    second = re.search(r"/login/link/\S+", run("link", "ada").output)
    assert first
    assert second
    client = build_app(database).test_client()
    assert client.get(first[0]).status_code == 404
    assert client.get(second[0]).status_code == 200


def test_the_list_names_everybody(run: Run) -> None:
    run("add", "zoe", "--role", "admin", line=f"{PASSWORD}\n")
    run("add", "ada", "--role", "support")
    run("disable", "zoe")
    assert run("list").output.splitlines() == [
        "ada\tsupport\tactive\tno password",
        "zoe\tadmin\tdisabled\tpassword",
    ]


@pytest.mark.parametrize(
    ("words", "line", "says"),
    [
        (("add", "ada", "--role", "support"), "short\n", "at least 12 characters"),
        (("add", "a b", "--role", "support"), "", "letters, digits"),
        (("add", "ada", "--role", "king"), "", "king"),
        (("disable", "nobody"), "", "no account named nobody"),
        (("link", "nobody"), "", "no account named nobody"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_a_failure(
    run: Run, words: tuple[str, ...], line: str, says: str
) -> None:
    done = run(*words, line=line)
    assert done.exit_code != 0
    assert says in done.output
    assert "short" not in done.output


def test_a_name_is_given_once(run: Run) -> None:
    assert run("add", "ada", "--role", "support").exit_code == 0
    again = run("add", "ada", "--role", "admin")
    assert again.exit_code == 1
    assert "there is an account named ada" in again.output
