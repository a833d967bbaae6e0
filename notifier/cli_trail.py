"""`flask trail`: check the trail, hand it to an auditor, compute the states anew, sign its ends.

All but the last only read, in one snapshot; all work with the application running or not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from notifier import __version__
from notifier.cli_checkpoint import checkpoint_command
from notifier.flow.checkpoints import public_keys
from notifier.setting_values import KeyRing
from notifier.store.database import Database, PooledConnection
from notifier.store.reads import trail, trail_beside, trail_export, trail_rebuild
from notifier.store.reads.look_up import notices_known_as
from notifier.store.reads.trail_export import Scope
from notifier.store.reads.trail_rebuild import Difference
from notifier.trail_verifier import Verifier, expectation

MOST_NAMED: Final = 10
NO_KEY: Final = "no NOTIFIER_CHECKPOINT_KEY is set: no checkpoints are made"
TIME: Final = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"])


def trail_commands(database: Database, checkpoint_key: KeyRing | None) -> click.Group:
    """The group `trail`; `checkpoint_key` signs checkpoints, its old seeds still verify."""
    keys = public_keys(checkpoint_key.all) if checkpoint_key else {}

    @click.group("trail", help="Verify, export, rebuild or checkpoint the trail.")
    def group() -> None:
        pass

    signing = checkpoint_command(database, checkpoint_key, NO_KEY)
    for command in (_verify(database, keys), _export(database, keys), _rebuild(database), signing):
        group.add_command(command)
    return group


def _verify(database: Database, keys: Mapping[str, bytes]) -> click.Command:
    @click.command("verify", help="Check every chain and checkpoint; exit 1 on any fault.")
    @click.option(
        "--expect",
        metavar="NUMBER:DIGEST",
        multiple=True,
        callback=_expectations,
        help="A checkpoint that must be there, as its log line has it. May be repeated.",
    )
    def verify(expect: dict[int, str]) -> None:
        verifier = Verifier(keys, click.echo, expect)
        with database.connection() as connection, trail.snapshot(connection):
            verifier.run(trail_export.records(connection, Scope()))
            beside = _tell_beside(connection)
        for line in [*verifier.summary(), *_keys_told(keys), *_beside_told(beside)]:
            click.echo(line)
        if verifier.faults or beside:
            sys.exit(1)

    return verify


def _export(database: Database, keys: Mapping[str, bytes]) -> click.Command:
    @click.command("export", help="Write the trail as NDJSON, for an auditor.")
    @click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout.")
    @click.option("--notice", metavar="ID", help="One notice, by any id that leads to it alone.")
    @click.option(
        "--since", type=TIME, callback=_in_utc, help="Notices with a change from then on."
    )
    @click.option("--until", type=TIME, callback=_in_utc, help="Notices with a change before then.")
    def export(
        out: Path | None, notice: str | None, since: datetime | None, until: datetime | None
    ) -> None:
        if notice is not None and (since or until):
            raise click.UsageError("--notice cannot be combined with --since or --until")
        known = None if notice is None else _the_one(database, notice)
        scope = Scope(known, since, until)
        with (
            _output(out) as write,
            database.connection() as connection,
            trail.snapshot(connection),
        ):
            found = trail_export.records(connection, scope)
            manifest = trail_export.write(found, scope, keys=keys, version=__version__, out=write)
        click.echo(
            f"{manifest['rows']} rows of {manifest['notices']} notices,"
            f" {manifest['checkpoints']} checkpoints; SHA-256 {manifest['sha256']}",
            err=True,
        )

    return export


def _the_one(database: Database, told: str) -> UUID:
    with database.connection() as connection:
        found = notices_known_as(connection, told)
    if not found:
        raise click.ClickException("no notice has this id")
    if len(found) > 1:
        several = "\n".join(map(str, found[:MOST_NAMED]))
        raise click.ClickException(f"{len(found)} notices have this id; name one:\n{several}")
    return found[0]


def _rebuild(database: Database) -> click.Command:
    @click.command("rebuild", help="Compute every state from the trail and compare; changes none.")
    def rebuild() -> None:
        states = trail_rebuild.differences(database)
        for each in states:
            _tell(each)
        with database.connection() as connection, trail.snapshot(connection):
            beside = _tell_beside(connection)
        found = len(states) + beside
        click.echo(f"differences {found}" if found else "every state follows from the trail")
        if found:
            sys.exit(1)

    return rebuild


def _tell(each: Difference) -> None:
    click.echo(
        f"notice {each.notice_id} {each.what}: stored {each.stored}, by the trail {each.rebuilt}"
    )


def _tell_beside(connection: PooledConnection) -> int:
    """Tell what beside the trail is otherwise than the trail says, and the altered policies."""
    count = 0
    for count, each in enumerate(trail_beside.differences(connection), start=1):  # noqa: B007
        _tell(each)
    for revision in trail_beside.altered_policies(connection):
        count += 1
        click.echo(f"policy revision {revision}: its values are not those of its digest")
    return count


def _beside_told(beside: int) -> Iterator[str]:
    yield f"beside the trail: {beside} differences" if beside else "beside the trail: no difference"


@contextmanager
def _output(path: Path | None) -> Iterator[Callable[[bytes], object]]:
    if path is None:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    with path.open("wb") as file:
        yield file.write


def _keys_told(keys: Mapping[str, bytes]) -> Iterator[str]:
    for name, key in keys.items():
        yield f"key {name} public {key.hex()}"
    if not keys:
        yield NO_KEY


def _in_utc(
    _context: click.Context, _option: click.Parameter, given: datetime | None
) -> datetime | None:
    if given is None:
        return None
    try:
        return given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
    except OverflowError:
        raise click.BadParameter("lies outside the calendar of UTC") from None


def _expectations(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> dict[int, str]:
    try:
        return dict(expectation(each) for each in given)
    except ValueError:
        raise click.BadParameter("a checkpoint is told as NUMBER:DIGEST") from None
