"""Finds the Chromium that browser tests drive, and installs Debian's where that is allowed."""

from __future__ import annotations

import os
import shutil
import sys

from setup.debian import install

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium-headless-shell", "chromium")


def find_browser() -> str | None:
    """The path of a Chromium: the variable CHROMIUM, else the first on the PATH."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next((path for path in map(shutil.which, NAMES) if path), None)


def install_browser() -> bool:
    """Install Debian's package; whether one is there afterwards."""
    what = "Chromium for the browser tests"
    return install(what, PACKAGES, find_browser, beside=["fonts-dejavu-core"])


def main() -> int:
    """0 when there is a browser, else 1 and what to do."""
    if find_browser() or install_browser():
        return 0
    sys.stderr.write(
        "The browser tests need Chromium and found none. Install it (on Debian: apt-get install "
        "chromium-headless-shell), or set CHROMIUM to the path of one, and run this again.\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
