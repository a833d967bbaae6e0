"""Every gate that needs no network, all of them run even when one fails."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".venv" / "bin"


def gates() -> dict[str, list[str]]:
    """Name → command. Gates over kinds of files are left out while there are none."""
    commands = {
        "format": ["ruff", "format", "--check", "--quiet", "."],
        "lint": ["ruff", "check", "--quiet", "."],
        "types": ["mypy"],
        "imports": ["lint-imports", "--no-cache"],
    }
    if any((ROOT / "templates").rglob("*.html")):
        commands["templates"] = ["djlint", "--quiet", "--lint", "templates"]
    migrations = sorted(str(path) for path in (ROOT / "migrations" / "sql").glob("*.sql"))
    if migrations:
        commands["migrations"] = ["squawk", *migrations]
    return commands


def main() -> int:
    """0 when all hold; a failing gate's own output is shown."""
    failed = []
    for name, (tool, *arguments) in gates().items():
        began = time.monotonic()
        done = subprocess.run(
            [TOOLS / tool, *arguments], cwd=ROOT, check=False, capture_output=True, text=True
        )
        word = "ok" if done.returncode == 0 else "FAILED"
        sys.stdout.write(f"  {name:<11} {word} ({time.monotonic() - began:.1f} s)\n")
        if done.returncode != 0:
            failed.append(name)
            sys.stdout.write(done.stdout + done.stderr)
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
