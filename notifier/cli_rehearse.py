"""`flask rehearse`: what would happen to a notice, without a database, a network or a wait."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

import click

from notifier.domain.policy import Policy, PolicyInvalid
from notifier.rehearsal import checking, library, sampling, telling
from notifier.rehearsal.acts import Rehearsed
from notifier.rehearsal.engine import rehearse
from notifier.rehearsal.library import ScenarioInvalid
from notifier.rehearsal.sampling import Shares
from notifier.rehearsal.script import Script
from notifier.rehearsal.telling import Phrases
from notifier.web.people import phrases, times

PHRASES: Final = Phrases(
    sentence=phrases.sentence,
    looked=phrases.looked,
    state=lambda state: phrases.badge(state).word,
    span=times.stopwatch,
    left=partial(times.left_words, written=times.stopwatch),
)
MOST_NOTICES: Final = 100_000
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def rehearse_command() -> click.Command:
    """The command; it reads files and writes to the terminal, and no more."""

    @click.command("rehearse", short_help="Play a notice on a virtual clock, sending nothing.")
    @click.argument("scenario", required=False)
    @click.option("--list", "list_them", is_flag=True, help="Name every scenario.")
    @click.option("--policy", type=_FILE, help="Today's policy (TOML). Default: built-in values.")
    @click.option("--draft", type=_FILE, help="A policy to compare with today's, side by side.")
    @click.option(
        "--sample",
        "number",
        type=click.IntRange(1, MOST_NOTICES),
        help="Rehearse this many notices with drawn latencies, and tell shares.",
    )
    @click.option("--seed", type=int, default=1, show_default=True, help="For --sample.")
    def command(
        scenario: str | None,
        list_them: bool,
        policy: Path | None,
        draft: Path | None,
        number: int | None,
        seed: int,
    ) -> None:
        """Play SCENARIO (a name of --list, or a TOML file of your own) on a virtual clock."""
        if list_them:
            _list()
        elif number is not None and scenario is not None:
            raise click.UsageError("--sample draws its notices; it takes no scenario")
        elif number is not None:
            _sample(policy, draft, number, seed)
        elif scenario is None:
            raise click.UsageError("name a scenario; --list tells which there are")
        else:
            _play(scenario, policy, draft)

    return command


def _list() -> None:
    for name in library.names():
        click.echo(f"{name:<42} {library.load(name).title}")


def _play(name: str, policy: Path | None, draft: Path | None) -> None:
    script = _scenario(name)
    today = _policy(script, policy)
    went = rehearse(script, today)
    click.echo(f"{script.title}. Requested at 12:00 UTC, valid for {script.life_s:g} s.\n")
    width = max(shutil.get_terminal_size((150, 24)).columns, 80)
    if draft is None:
        _print(telling.timeline(went, PHRASES, width))
        if policy is None:
            _check(script, went)
        return
    proposed = _policy(script, draft)
    _tell_changes(today, proposed)
    _print(telling.side_by_side(went, rehearse(script, proposed), PHRASES, width))


def _check(script: Script, went: Rehearsed) -> None:
    """Under the values that it was written for a scenario has to go as it says."""
    if script.expect is None:
        return
    found = checking.differences(went, script.expect)
    click.echo("\nas the scenario expects" if not found else "\nNOT as the scenario expects:")
    _print(f"  {each}" for each in found)
    if found:
        sys.exit(1)


def _sample(policy: Path | None, draft: Path | None, number: int, seed: int) -> None:
    script = Script(title="drawn")
    today = _policy(script, policy)
    columns = [("today", sampling.sample(today, sampling.TYPICAL, number, seed))]
    if draft is not None:
        proposed = _policy(script, draft)
        _tell_changes(today, proposed)
        columns.append(("draft", sampling.sample(proposed, sampling.TYPICAL, number, seed)))
    click.echo(f"{number} notices, seed {seed}, typical latencies (not measured ones)\n")
    click.echo(" " * 34 + "".join(f"{name:>18}" for name, _ in columns))
    for name, attribute in _ROWS:
        cells = [_share(shares, getattr(shares, attribute)) for _, shares in columns]
        mark = "!" if len(set(cells)) > 1 else " "
        click.echo(f"{mark} {name:<32}" + "".join(f"{each:>18}" for each in cells))


_ROWS: Final = (
    ("email delivered in time", "by_email_in_time"),
    ("text delivered in time", "by_text_in_time"),
    ("texts started", "texts_started"),
    ("of them avoidable", "avoidable"),
    ("expired", "expired"),
    ("failed", "failed"),
)


def _share(shares: Shares, number: int) -> str:
    return f"{number} ({shares.share(number):.1%})"


def _tell_changes(today: Policy, draft: Policy) -> None:
    changes = list(telling.changed_values(today, draft))
    click.echo("The draft changes:" if changes else "The draft changes no value.")
    _print(f"  {each}" for each in changes)
    click.echo("")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _scenario(name: str) -> Script:
    try:
        return library.load(name)
    except ScenarioInvalid as error:
        raise click.ClickException(str(error)) from None


def _policy(script: Script, path: Path | None) -> Policy:
    try:
        return library.policy_for(script, path.read_bytes() if path else None)
    except ScenarioInvalid as error:
        raise click.ClickException(str(error)) from None
    except PolicyInvalid as error:
        where = f"{path} is refused" if path else "the scenario's own policy is refused"
        raise click.ClickException(f"{where}:\n{error}") from None
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or 'cannot be read'}") from None
