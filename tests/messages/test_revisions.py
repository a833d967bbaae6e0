"""A revision's source is fixed, and its locales are matched as BCP 47 wants."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from notifier.messages.revisions import (
    ROOT,
    check_revisions,
    find,
    list_revisions,
    pick_locale,
    source_digest,
)

FIRST = ("password-reset", "1")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT, tmp_path / "messages"))


def test_the_product_comes_with_password_reset_in_two_languages() -> None:
    assert FIRST in list_revisions()
    template = find(*FIRST)
    assert template is not None
    assert (template.locales, template.default_locale) == (("de", "en"), "en")
    assert template.source_digest == source_digest(*FIRST)
    assert template.classification == "transactional"


def test_a_template_is_compiled_once() -> None:
    assert find(*FIRST) is find(*FIRST)


@pytest.mark.parametrize(
    ("requested", "picked", "fell_back"),
    [
        ("de", "de", False),
        ("DE", "de", False),
        ("de-AT", "de", False),
        ("de-Latn-CH-1996", "de", False),
        ("de-x-private", "de", False),
        ("en-GB", "en", False),
        (None, "en", False),
        ("fr", "en", True),
        ("fr-DE", "en", True),
        ("den", "en", True),
        ("de_AT", "en", True),
        ("", "en", True),
        ("de-", "en", True),
        ("de\n", "en", True),
        ("../de", "en", True),
    ],
)
def test_a_locale_is_matched_by_shortening_it(
    requested: str | None, picked: str, *, fell_back: bool
) -> None:
    template = find(*FIRST)
    assert template is not None
    assert pick_locale(requested, template) == (picked, fell_back)


def test_the_digest_does_not_depend_on_where_the_source_lies(copy: Path) -> None:
    assert source_digest(*FIRST, copy) == source_digest(*FIRST)
    assert check_revisions({FIRST: source_digest(*FIRST)}, copy) == []


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def rename(path: Path) -> None:
    path.rename(path.with_name("email.old.txt"))


def move_text_between_files(path: Path) -> None:
    other = path.with_name("sms.txt")
    other.write_bytes(path.read_bytes()[-1:] + other.read_bytes())
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("change", [append, rename, move_text_between_files])
def test_a_changed_source_under_a_known_revision_stops_the_start(
    copy: Path, change: Callable[[Path], None]
) -> None:
    before = source_digest(*FIRST, copy)
    change(copy / "password-reset" / "1" / "de" / "email.txt")
    problems = check_revisions({FIRST: before}, copy)
    assert any("has changed since its first use" in problem for problem in problems)


def test_a_revision_that_was_used_and_is_gone_stops_the_start(copy: Path) -> None:
    (problem,) = check_revisions({("password-reset", "0"): "digest"}, copy)
    assert problem == (
        "template password-reset revision 0 was used before and is missing now; restore it"
    )


def test_a_new_revision_is_no_problem(copy: Path) -> None:
    shutil.copytree(copy / "password-reset" / "1", copy / "password-reset" / "2")
    assert check_revisions({FIRST: source_digest(*FIRST)}, copy) == []
    assert list_revisions(copy) == (FIRST, ("password-reset", "2"))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("en/sms.txt", b"{% if %}", "TemplateSyntaxError"),
        ("en/sms.txt", b"\xff", "UnicodeDecodeError"),
        ("template.toml", b"default_locale = 'en'", "KeyError"),
        ("template.toml", b"default_locale = 'fr'\n[sms]\nclassification = 'x'", "lacks fr/"),
        ("fr/sms.txt", b"", "lacks fr/email.subject.txt"),
    ],
)
def test_a_source_that_cannot_be_used_is_met_at_start(
    copy: Path, name: str, content: bytes, told: str
) -> None:
    target = copy / "password-reset" / "1" / name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content)
    (problem,) = check_revisions({}, copy)
    assert told in problem


def test_an_editors_hidden_file_changes_nothing(copy: Path) -> None:
    (copy / "password-reset" / "1" / "en" / ".sms.txt.swp").write_bytes(b"x")
    assert source_digest(*FIRST, copy) == source_digest(*FIRST)
