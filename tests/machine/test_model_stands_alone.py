"""A model that borrowed from the product would agree with its mistakes."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

MODEL = Path(__file__).parent / "model"
OWN = "tests.machine.model"


def imported(source: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "written out, so that it can be read here"
            found.add(node.module or "")
    return found


def test_the_model_imports_itself_and_the_standard_library_and_nothing_else() -> None:
    sources = sorted(MODEL.glob("*.py"))
    names = {name for source in sources for name in imported(source)}

    assert len(sources) > 4
    foreign = {name for name in names if not name.startswith(OWN)}
    assert {name.partition(".")[0] for name in foreign} <= set(sys.stdlib_module_names)


def test_the_model_calls_nothing_by_a_name_that_it_was_given() -> None:
    for source in MODEL.glob("*.py"):
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(source.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"__import__", "eval", "exec", "import_module"}
