"""`flask users`: local accounts, from a shell on a host of the application."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from notifier.accounts import people, sign_in_links
from notifier.accounts.passwords import PasswordUnfit
from notifier.accounts.permissions import Role

if TYPE_CHECKING:
    from notifier.store.database import Database

REFUSALS = (people.NameTaken, people.NameUnfit, people.NobodyOfThatName, PasswordUnfit)


def users_commands(
    open_database: Callable[[], Database], public_url: Callable[[], str]
) -> click.Group:
    """The group `users`; `public_url` (no slash at its end) begins the printed links."""

    @click.group(help="Add, list, link or disable local accounts.")
    def users() -> None:
        pass

    @users.command(help="Create an account. The password is one line of standard input, if any.")
    @click.argument("name")
    @click.option("--role", type=click.Choice([role.value for role in Role]), required=True)
    def add(name: str, role: str) -> None:
        password = password_from_input()
        with refusals_told(), open_database().connection() as connection:
            person = people.add(connection, name, Role(role), password)
            click.echo(f"{person.name} may sign in as {person.role}.")
            if password is None:
                token = sign_in_links.create(connection, person.person_id)
                tell_link(public_url(), token)

    @users.command("list", help="List every account with its role.")
    def list_() -> None:
        with open_database().connection() as connection:
            everybody = people.everybody(connection)
        for person in everybody:
            state = "disabled" if person.disabled_at else "active"
            secret = "password" if person.has_password else "no password"
            secret = secret if person.source == "local" else "single sign-on"
            click.echo(f"{person.name}\t{person.role}\t{state}\t{secret}")

    @users.command(help="Print a fresh one-time link, where a password is lost.")
    @click.argument("name")
    def link(name: str) -> None:
        with refusals_told(), open_database().connection() as connection:
            person = people.named(connection, name)
            if person.disabled_at is not None:
                raise click.ClickException(f"{name} is disabled")
            if person.source != "local":
                raise click.ClickException(f"{name} comes from single sign-on and has no password")
            tell_link(public_url(), sign_in_links.create(connection, person.person_id))

    @users.command(help="Shut an account; its sessions end with their next request.")
    @click.argument("name")
    def disable(name: str) -> None:
        with refusals_told(), open_database().connection() as connection:
            people.disable(connection, name)
        click.echo(f"{name} may no longer sign in.")

    return users


def password_from_input() -> str | None:
    """One line of standard input; None at a terminal, at its end, or for an empty line."""
    if sys.stdin.isatty():
        return None
    return sys.stdin.readline().rstrip("\r\n") or None


def tell_link(public_url: str, token: str) -> None:
    """Print the link and what it is good for."""
    click.echo(f"{public_url}/login/link/{token}")
    click.echo("It works once, within 24 hours.")


class refusals_told:  # noqa: N801 - reads as a statement
    """Turns what an operator can mend into one line and exit code 1."""

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Raise the plain line in place of a known refusal."""
        if isinstance(error, REFUSALS):
            raise click.ClickException(str(error)) from None
