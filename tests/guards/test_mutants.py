"""The quick guards are broken in every run; the runner tells the truth about what it saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guards import mutants
from tests.guards.copies import ROOT, own_copy
from tests.guards.guard import Guard, Replaced, Stale
from tests.guards.mutants import GUARDS, Verdict

RULES = "tests/unit/test_answers.py::test_p12_what_is_closed_stays_closed"


def test_each_quick_guard_when_broken_turns_its_test_red() -> None:
    results = mutants.try_all([guard for guard in GUARDS if guard.quick])

    assert len(results) == 10
    assert {result.verdict for result in results} == {Verdict.NOTICED}, mutants.table(results)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_each_guard_stands_where_the_table_says(guard: Guard, tmp_path: Path) -> None:
    source = ROOT / guard.broken_by.path
    target = tmp_path / guard.broken_by.path
    target.parent.mkdir(parents=True)
    target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")

    guard.broken_by.apply(tmp_path)

    assert target.read_text(encoding="utf-8") != source.read_text(encoding="utf-8")
    assert (ROOT / guard.test.partition("::")[0]).exists()


def test_names_are_told_apart_and_every_promise_that_a_guard_keeps_exists() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)
    assert {guard.promise for guard in GUARDS} <= {f"P{number}" for number in range(1, 13)}


def test_a_place_that_is_not_there_once_is_stale(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")

    for old in ("x = 1", "y = 2"):
        with pytest.raises(Stale):
            Replaced("a.py", old, "z").apply(tmp_path)


def test_a_test_that_stays_green_or_never_runs_is_not_taken_for_a_red_one() -> None:
    harmless = Replaced("notifier/domain/answers.py", "Pure;", "Pure:")
    broken = Replaced("notifier/domain/answers.py", "from enum", "from nowhere")
    guards = [
        Guard("harmless", "P1", "", harmless, RULES),
        Guard("stale", "P1", "", broken, RULES),
        Guard(
            "no import", "P1", "", Replaced(harmless.path, "import datetime", "import dates"), RULES
        ),
        Guard("no test", "P1", "", harmless, f"{RULES}_at_all"),
    ]

    with own_copy() as copy:
        verdicts = [mutants.try_guard(copy, guard).verdict for guard in guards]

    assert verdicts == [Verdict.UNNOTICED, Verdict.STALE, Verdict.TROUBLE, Verdict.TROUBLE]
