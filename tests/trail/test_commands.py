"""`flask trail` as people run it: beside the running product, and what it says where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from notifier.cli_trail import trail_commands
from notifier.setting_values import KeyRing
from notifier.store.reads.gauges import read
from notifier.store.reads.system import load_system
from peers.events import build_event
from tests.db.rig import Rig
from tests.running import RunningApp, surroundings, until
from tests.trail.tampering import KEYS, SEED, Intruder, delivered, in_export, seal


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[RunningApp]:
    """A running product that sends mails."""
    with ExitStack() as stack:
        around = stack.enter_context(surroundings(database_url, tmp_path))
        yield stack.enter_context(RunningApp(around))


def test_p8_the_trail_of_the_running_product_is_verified_exported_and_rebuilt(
    app: RunningApp, tmp_path: Path
) -> None:
    app.settled(app.admit(build_event()))
    around, file = app.around, tmp_path / "export.ndjson"
    until(lambda: around.rows("SELECT FROM checkpoint"), 30.0, "the first checkpoint")

    verified, rebuilt = app.flask("trail", "verify"), app.flask("trail", "rebuild")
    exported, printed = (
        app.flask("trail", "export", "--out", str(file)),
        app.flask("trail", "export"),
    )

    assert (verified.returncode, "all holds" in verified.stdout) == (0, True), verified.stdout
    assert "notices 1, rows 6, checkpoints 1" in verified.stdout
    assert (rebuilt.returncode, rebuilt.stdout) == (0, "every state follows from the trail\n")
    assert exported.returncode == printed.returncode == 0, exported.stderr
    assert file.read_text() == printed.stdout
    assert json.loads(printed.stdout.splitlines()[-1])["rows"] == 6
    assert '"event": "trail_checkpoint"' in app.log


def run(rig: Rig, *arguments: str, key: bytes | None = SEED) -> Result:
    group = trail_commands(rig.database, KeyRing(key) if key else None)
    return CliRunner().invoke(group, arguments)


def test_p8_each_fault_is_named_and_ends_with_status_1(rig: Rig, intruder: Intruder) -> None:
    notice_id = delivered(rig, 1)
    seal(rig)
    delivered(rig, 2)
    [(name, key)] = KEYS.items()
    sound = run(rig, "verify")
    assert (sound.exit_code, "all holds" in sound.output) == (0, True)
    assert "unprotected: 6 rows since " in sound.output
    assert f"key {name} public {key.hex()}" in sound.output

    intruder.run(
        "UPDATE transition SET detail = 'x' WHERE notice_id = %(n)s AND seq = 2", n=notice_id
    )
    intruder.run("UPDATE notice SET state = 'failed' WHERE notice_id = %(n)s", n=notice_id)

    found, rebuilt = run(rig, "verify"), run(rig, "rebuild")
    assert (found.exit_code, found.output.splitlines()[0]) == (
        1,
        f"altered notice {notice_id} row 2: is not what was written",
    )
    assert (rebuilt.exit_code, rebuilt.output.splitlines()[0]) == (
        1,
        f"notice {notice_id} state: stored failed, by the trail complete",
    )


def test_without_a_key_it_is_said_that_nothing_is_signed(rig: Rig) -> None:
    delivered(rig, 1)

    done = run(rig, "verify", key=None)

    assert done.exit_code == 0
    assert "no NOTIFIER_CHECKPOINT_KEY is set: no checkpoints are made" in done.output
    assert (
        "no checkpoint: a tail that was removed together with its head is not seen" in done.output
    )


def test_a_checkpoint_that_is_known_from_the_log_must_be_there(rig: Rig) -> None:
    delivered(rig, 1)
    seal(rig)
    digest = rig.one("SELECT encode(hash, 'hex') AS digest FROM checkpoint")["digest"]

    assert run(rig, "verify", "--expect", f"1:{digest}").exit_code == 0
    missing = run(rig, "verify", "--expect", f"2:{digest}")
    other = run(rig, "verify", "--expect", "1:" + "0" * 64)
    garbled = run(rig, "verify", "--expect", "1:xy")

    assert (missing.exit_code, "2, known from elsewhere, is not there" in missing.output) == (
        1,
        True,
    )
    assert (other.exit_code, "1, known from elsewhere, is another one" in other.output) == (1, True)
    assert garbled.exit_code == 2


def test_an_export_of_one_notice_and_of_a_day(rig: Rig) -> None:
    first, second = delivered(rig, 1), delivered(rig, 2)

    one = run(rig, "export", "--notice", str(first))
    day = run(rig, "export", "--since", "2000-01-01", "--until", "2000-01-02T00:00:00+0200")
    both = run(rig, "export", "--notice", str(first), "--since", "2000-01-01")
    before_all_days = run(rig, "export", "--since", "0001-01-01T00:00:00+1400")

    assert in_export(one.stdout_bytes)[0].rows == 6
    assert (str(first) in one.stdout, str(second) in one.stdout) == (True, False)
    assert (day.exit_code, in_export(day.stdout_bytes)[0].rows) == (0, 0)
    assert '"until":"2000-01-01T22:00:00.000000Z"' in day.stdout
    assert both.exit_code == 2
    assert (before_all_days.exit_code, "outside the calendar" in before_all_days.output) == (
        2,
        True,
    )


def test_the_age_of_the_last_checkpoint_is_a_metric_and_stands_on_the_system_page(
    rig: Rig,
) -> None:
    def shown() -> tuple[list[float], int | None]:
        with rig.database.connection() as connection:
            last = load_system(connection, with_hosts=False).checkpoint
        ages = [each.value for each in read(rig.database) if each.name == "checkpoint_age_seconds"]
        return ages, last.number if last else None

    assert shown() == ([], None)
    seal(rig)
    seal(rig)
    [age], number = shown()

    assert (0 <= age < 600, number) == (True, 2)
