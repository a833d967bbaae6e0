"""The commands of `flask`: halts, accounts, the trail, rehearsals, doctor; `flask db` migrates."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterable
from typing import Final

import click
from flask import Flask

from notifier.cli_help import put_product_first
from notifier.cli_rehearse import rehearse_command
from notifier.cli_tokens import tokens_commands
from notifier.cli_trail import trail_commands
from notifier.cli_users import users_commands
from notifier.doctor import Finding
from notifier.flow import halts
from notifier.flow.halts import Acknowledgement, HaltRefused
from notifier.settings import Settings
from notifier.store.database import Database

# \b keeps click from filling the lines that follow.
SCOPES: Final = """\
\b
SCOPE is one of
  all                        everything
  channel:sms                a channel: email or sms
  provider:smtp              a provider: smtp, postmark, resend or twilio
  template:password-reset@1  a template's revision
  account:ID                 one account
  event:ID                   one event
"""
HALT: Final = f"""\
Stop every start in SCOPE, on every host, until it is released.

{SCOPES}
\b
For example:
  flask halt channel:email --reason "relay incident 4711"

What it lists as in flight had begun before; it is in effect when that list is empty. See also
`flask halts`.
"""
RELEASE: Final = f"""\
Lift the halt of SCOPE, written as it was for `flask halt`.

{SCOPES}
\b
For example:
  flask release channel:email --reason "relay is back"

What has expired meanwhile is not sent; the rest goes, what has the least validity left first.
"""


def install(
    app: Flask, settings: Settings, database_url: str, examine: Callable[[], Iterable[Finding]]
) -> None:
    """Put the commands on `app`; each opens the database for itself. `examine` is the doctor."""
    database = Database(database_url, size=2, application_name="notifier-cli")
    for command in (
        _halt(database),
        _release(database),
        _halts(database),
        _doctor(examine),
        users_commands(lambda: database, lambda: settings.public_base),
        trail_commands(database, settings.checkpoint_key),
        tokens_commands(),
        rehearse_command(),
    ):
        app.cli.add_command(command)
    put_product_first(app.cli, click.get_current_context(silent=True))


def operator() -> str:
    """Who runs a command, as the trail and the halts name them."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return "cli"


def _halt(database: Database) -> click.Command:
    @click.command("halt", help=HALT, short_help="Stop every start in a scope, on every host.")
    @click.argument("scope")
    @click.option("--reason", required=True, help="Why, for whoever is on call next.")
    def halt(scope: str, reason: str) -> None:
        try:
            acknowledged = halts.engage(database, scope=scope, reason=reason, by=operator())
        except HaltRefused as error:
            raise click.UsageError(str(error)) from None
        click.echo(f"halted {scope}: nothing else starts")
        _tell_in_flight(acknowledged)

    return halt


def _release(database: Database) -> click.Command:
    @click.command("release", help=RELEASE, short_help="Lift the halt of a scope.")
    @click.argument("scope")
    @click.option("--reason", required=True, help="Why, for whoever is on call next.")
    def release(scope: str, reason: str) -> None:
        try:
            lifted = halts.release(database, scope=scope, reason=reason, by=operator())
        except HaltRefused as error:
            raise click.UsageError(str(error)) from None
        if not lifted:
            raise click.ClickException(f"no halt stands for {scope}")
        click.echo(f"released {scope}")

    return release


def _halts(database: Database) -> click.Command:
    @click.command("halts", help="List the halts that stand and what is in flight under each.")
    def list_halts() -> None:
        standing = halts.standing(database)
        if not standing:
            click.echo("no halt stands")
        for acknowledged in standing:
            halt = acknowledged.halt
            click.echo(
                f"{halt.scope}  since {halt.engaged_at:%Y-%m-%d %H:%M:%S} UTC"
                f"  by {halt.engaged_by}: {halt.reason}"
            )
            _tell_in_flight(acknowledged)

    return list_halts


def _tell_in_flight(acknowledged: Acknowledgement) -> None:
    if acknowledged.in_effect:
        click.echo("  in effect: nothing is in flight")
        return
    click.echo(f"  {len(acknowledged.in_flight)} still in flight:")
    for each in acknowledged.in_flight:
        click.echo(
            f"  {each.event_id}  {each.channel} {each.state}"
            f"  until {each.lease_until:%H:%M:%S} UTC  {each.reference or 'not started'}"
        )


def _doctor(examine: Callable[[], Iterable[Finding]]) -> click.Command:
    @click.command("doctor", help="Check all that sending rests on; sends nothing.")
    def tell() -> None:
        faults = 0
        for finding in examine():
            click.echo(f"{'ok   ' if finding.ok else 'FAULT'} {finding.part}: {finding.detail}")
            faults += not finding.ok
        if faults:
            sys.exit(1)

    return tell
