"""The front-end files are the pinned ones, however they were installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from setup import front_end

ROOT = Path(__file__).resolve().parents[2]
HTMX = "htmx-4.0.1.min.js"
PINNED = "sha384-Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn"


def test_the_installed_file_has_the_pinned_digest() -> None:
    assert front_end.integrity_of(ROOT / "static" / "vendor" / HTMX) == PINNED
    assert front_end.pinned_files()[HTMX]["integrity"] == PINNED


def test_the_lock_pins_one_exact_version_with_integrity_and_no_address() -> None:
    text = (ROOT / "package-lock.json").read_text()
    locked = json.loads(text)["packages"]["node_modules/htmx.org"]

    assert (
        locked["version"]
        == json.loads((ROOT / "package.json").read_text())["dependencies"]["htmx.org"]
    )
    assert locked["integrity"].startswith("sha512-")
    assert "resolved" not in text


def test_no_lock_file_names_a_host() -> None:
    for name in ("package-lock.json", *(path.name for path in ROOT.glob("requirements*"))):
        found = re.findall(
            r"https?://\S+|--(?:extra-)?index-url|--find-links", (ROOT / name).read_text()
        )
        assert found == [], name


def test_every_locked_package_has_a_hash() -> None:
    for path in ROOT.glob("requirements*.txt"):
        blocks = re.split(r"\n(?=[a-z])", path.read_text().strip())
        assert [block for block in blocks if "--hash=sha256:" not in block] == [], path.name


def test_a_file_with_another_digest_is_not_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "wrong.js"
    wrong.write_text("alert(1)")

    with pytest.raises(subprocess.CalledProcessError):
        front_end.place(wrong, tmp_path / HTMX)

    assert not (tmp_path / HTMX).exists()
    monkeypatch.setattr(front_end, "VENDOR", tmp_path)
    assert front_end.missing_files() == [HTMX]


@pytest.mark.parametrize("npm", ["from the path", "from the wheel"])
def test_both_ways_of_installing_give_the_same_file(
    npm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("package.json", "package-lock.json", ".npmrc", "requirements-front-end.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(front_end, "ROOT", tmp_path)
    monkeypatch.setattr(front_end, "VENDOR", tmp_path / "static" / "vendor")
    if npm == "from the wheel":
        monkeypatch.setattr(shutil, "which", lambda _name: None)

    front_end.install_front_end(Path(sys.executable))

    assert front_end.integrity_of(tmp_path / "static" / "vendor" / HTMX) == PINNED
