"""What `flask --help` says: the product's own sentence and commands first, Flask's own not."""

from __future__ import annotations

from typing import Final

import click
from flask.cli import FlaskGroup

SENTENCE: Final = (
    "Reset notices: tell a person once that a password reset was started, and prove what "
    "happened. `python app.py` serves; these commands look after it."
)
BUILT_IN: Final = ("run", "shell", "routes")
"""Flask's own. `run` serves without most of what `python app.py` has."""

MIGRATIONS: Final = "db"
NEEDED: Final = frozenset({"upgrade", "current", "history"})
"""What of the migrations somebody needs who does not write them."""


def put_product_first(commands: click.Group, context: click.Context | None) -> None:
    """List the product's `commands` first, and not what nobody needs; all can be run as before.

    `context` is that of the command that is being run, if one is.
    """
    migrations = commands.commands.get(MIGRATIONS)
    if isinstance(migrations, click.Group):
        for name, command in migrations.commands.items():
            command.hidden = name not in NEEDED
    group = context.find_root().command if context else None
    if not isinstance(group, FlaskGroup):
        return
    for name in BUILT_IN:
        group.commands[name].hidden = True
    group.help = SENTENCE
    # Flask loads the application in order to list its commands: when the head stands already.
    group.format_epilog = _Again(group)  # type: ignore[method-assign]


class _Again:
    """Writes a help anew in the place of its first writing, with what it has by now."""

    def __init__(self, group: FlaskGroup) -> None:
        self._group = group
        self._is_second = False

    def __call__(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self._is_second:
            return
        self._is_second = True
        self._group.list_commands = self._ours_first  # type: ignore[method-assign]
        formatter.buffer.clear()
        self._group.format_help(ctx, formatter)

    def _ours_first(self, ctx: click.Context) -> list[str]:
        names = FlaskGroup.list_commands(self._group, ctx)
        return sorted(names, key=lambda name: name == MIGRATIONS)
