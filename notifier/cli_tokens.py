"""`flask tokens`: a bearer token for a program, and the entry of the settings that knows it."""

from __future__ import annotations

import hashlib
import secrets

import click

from notifier.setting_readers import read_api_tokens
from notifier.setting_values import SCOPES, Unusable


def tokens_commands() -> click.Group:
    """The group `tokens`; it reads and writes nothing."""

    @click.group("tokens", help="Make bearer tokens for programs.")
    def group() -> None:
        pass

    @group.command("new", help="Print a new token, and its entry for NOTIFIER_API_TOKENS.")
    @click.argument("name")
    @click.option(
        "--scope",
        "scopes",
        type=click.Choice(sorted(SCOPES)),
        multiple=True,
        required=True,
        help="What it may be used for. May be repeated.",
    )
    def new(name: str, scopes: tuple[str, ...]) -> None:
        token = secrets.token_urlsafe(32)
        digest = hashlib.sha256(token.encode()).hexdigest()
        entry = f"{name}:{'+'.join(scopes)}:{digest}"
        try:
            read_api_tokens(entry)
        except Unusable as error:
            raise click.BadParameter(str(error), param_hint="NAME") from None
        click.echo(f"token  {token}")
        click.echo(f"entry  {entry}")
        click.echo(
            "The program sends the token as `Authorization: Bearer`; it is shown this once. Put the"
            " entry into NOTIFIER_API_TOKENS, behind a comma where others stand, and restart."
        )

    return group
