"""Asks whether a locked package has a known vulnerability; where nobody answers, it says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = (
    ".venv/bin/pip-audit",
    "--progress-spinner=off",
    "--disable-pip",
    "--require-hashes",
    "--timeout=10",
    "--format=json",
    "--requirement=requirements-dev.txt",
)


def main() -> int:
    """1 when a vulnerability is known, else 0, with the number that could not be asked about."""
    done = subprocess.run(COMMAND, cwd=ROOT, check=False, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        sys.stdout.write(
            f"  audit       not done, the service did not answer: {said.partition(':')[0]}\n"
        )
        return 0
    known = [(each, hole) for each in packages for hole in each.get("vulns", ())]
    unasked = sum("skip_reason" in each for each in packages)
    answered = len(packages) - unasked
    word = "FAILED" if known else "ok" if answered else "not done"
    sys.stdout.write(
        f"  audit       {word}: {answered} packages checked, {unasked} unknown there\n"
    )
    for each, hole in known:
        fixed = ", ".join(hole["fix_versions"]) or "no version yet"
        sys.stdout.write(f"    {each['name']} {each['version']}: {hole['id']}, fixed in {fixed}\n")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
