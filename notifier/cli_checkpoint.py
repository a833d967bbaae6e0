"""`flask trail checkpoint`: signs a checkpoint now, as the sweep does once an hour."""

from __future__ import annotations

import click

from notifier.flow.checkpoints import Seal, checkpoint_now
from notifier.setting_values import KeyRing
from notifier.store.database import Database


def checkpoint_command(database: Database, key: KeyRing | None, no_key: str) -> click.Command:
    """The command; `no_key` is what it says where there is none to sign with."""

    @click.command("checkpoint", help="Sign a checkpoint now; prints it as `--expect` takes it.")
    def make() -> None:
        if key is None:
            raise click.ClickException(no_key)
        seal = Seal.of(key.current)
        with database.connection() as connection:
            made = checkpoint_now(seal, connection)
        click.echo(f"{made.number}:{made.hash.hex()}")
        click.echo(f"{made.head_count} chains, signed with {seal.key_id}", err=True)

    return make
