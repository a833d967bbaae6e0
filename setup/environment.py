"""Makes `.venv` exactly what the lock says, and nothing when it already is.

Runs under the system's Python. The lock's own `uv` is installed first, because it fills the
environment in seconds; where it cannot reach a package index that pip can, pip does the rest.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

from setup.front_end import install_front_end, missing_files

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "setup-stamp"
LOCK = ROOT / "requirements-dev.txt"
INPUTS = (LOCK, ROOT / "requirements-front-end.txt", ROOT / "package-lock.json", ROOT / ".npmrc")


def main() -> int:
    """Set up what is missing; 0, or 1 with a message that says what to do."""
    wanted = fingerprint()
    if is_done(wanted):
        return 0
    VENV.mkdir(exist_ok=True)
    with (VENV / ".setup-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_done(wanted):
            return 0
        try:
            make_venv()
            install_packages()
            install_front_end(PYTHON)
        except subprocess.CalledProcessError as error:
            command = " ".join(map(str, error.cmd))
            sys.stderr.write(f"setup stopped: '{command}' failed, its own message stands above.\n")
            return 1
        STAMP.write_text(wanted)
    return 0


def fingerprint() -> str:
    """Of everything that the environment depends on; an environment cannot be moved."""
    digest = hashlib.sha256(f"{sys.version}\n{ROOT}\n".encode())
    for path in (*INPUTS, *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_done(wanted: str) -> bool:
    """Whether the last set-up was of this very lock, and is still there."""
    try:
        return STAMP.read_text() == wanted and PYTHON.exists() and not missing_files()
    except FileNotFoundError:
        return False


def make_venv() -> None:
    """A fresh virtual environment, unless one of this Python stands here."""
    asked = [str(PYTHON), "-c", "import sys, pip; print(sys.prefix, sys.version)"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        found = ""
    if found.strip() == f"{VENV} {sys.version}":
        return
    say(f"Making .venv with Python {sys.version.split()[0]}")
    # On Debian this needs the package python3-venv; its own message says so.
    run(sys.executable, "-m", "venv", "--clear", VENV)


def install_packages() -> None:
    """Exactly the packages of the lock, each checked against its hash."""
    say("Installing the locked packages")
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    bootstrap = VENV / "uv.txt"
    bootstrap.write_text(locked_block("uv"))
    run(*pip, "--require-hashes", "-r", bootstrap)
    uv = [str(VENV / "bin" / "uv"), "pip", "sync", "--quiet", "--python", str(PYTHON)]
    try:
        run(*uv, "--require-hashes", LOCK)
    except subprocess.CalledProcessError:
        say("uv could not; trying with pip")
        run(*pip, "--require-hashes", "-r", LOCK)


def locked_block(name: str) -> str:
    """The lines of one package in the lock, with its hashes."""
    lines = LOCK.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"{name}=="))
    end = next((at for at in range(start + 1, len(lines)) if lines[at][:1] != " "), len(lines))
    return "\n".join(lines[start:end]) + "\n"


def run(*command: str | Path) -> None:
    """Run a step; its output goes to the terminal, a failure ends the set-up."""
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT)


def say(text: str) -> None:
    """One line of progress."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
