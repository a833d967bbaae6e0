"""The message templates that come with the product, by id and revision.

A revision is immutable: its source is recorded as a digest when it is first used, and a
source that no longer agrees stops the start, because attempts made under the same revision
would otherwise have said something else. A changed text is a new revision.

Layout: `<id>/<revision>/template.toml` and, below it, one folder a locale with
`email.subject.txt`, `email.txt`, `email.html` and `sms.txt`.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import jinja2

ROOT: Final = Path(__file__).resolve().parents[2] / "templates" / "messages"

_LANGUAGE_TAG: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_PARTS: Final = ("email.subject.txt", "email.txt", "email.html", "sms.txt")


class TemplateBroken(Exception):
    """A template's source cannot be used. Says which and what, raised at start."""


@dataclass(frozen=True, slots=True)
class Template:
    """One revision: what it can speak, and its compiled texts.

    `source_digest` (SHA-256, hex) covers the very bytes that were compiled.
    `classification` is the kind of message that an SMS is registered as.
    """

    id: str
    revision: str
    default_locale: str
    locales: tuple[str, ...]
    classification: str
    source_digest: str
    texts: jinja2.Environment = field(repr=False, compare=False)


def list_revisions(root: Path = ROOT) -> tuple[tuple[str, str], ...]:
    """Every (id, revision) that the product has, sorted."""
    found = root.glob("*/*/template.toml")
    return tuple(sorted((path.parent.parent.name, path.parent.name) for path in found))


def find(template_id: str, revision: str, root: Path = ROOT) -> Template | None:
    """The template, compiled once per process; None where the product has no such one.

    The two names come from outside; they are looked up in the list, never made into a path.
    """
    if (template_id, revision) not in _known(root):
        return None
    return _load(root, template_id, revision)


def source_digest(template_id: str, revision: str, root: Path = ROOT) -> str:
    """SHA-256 (hex) over all files of a revision, their names and sizes, in name order."""
    return _digest(_read(root / template_id / revision))


def check_revisions(stored: Mapping[tuple[str, str], str], root: Path = ROOT) -> list[str]:
    """What forbids a start, given the digests recorded earlier; empty when nothing does.

    Compiles every revision, so that a broken source is met now and not at the first send.
    """
    present = list_revisions(root)
    problems = [problem for each in present if (problem := _load_problem(root, *each))]
    for (template_id, revision), digest in sorted(stored.items()):
        name = f"template {template_id} revision {revision}"
        if (template_id, revision) not in present:
            problems.append(f"{name} was used before and is missing now; restore it")
        elif source_digest(template_id, revision, root) != digest:
            problems.append(f"{name} has changed since its first use; make it a new revision")
    return problems


def pick_locale(requested: str | None, template: Template) -> tuple[str, bool]:
    """The template's locale for a BCP 47 tag, and whether it had to fall back on the default.

    Look-up as in RFC 4647 (3.4): the tag is shortened from its end until one fits, so `de-AT`
    is served by `de`, which is no fallback. No tag at all asks for the default.
    """
    if requested is None:
        return template.default_locale, False
    known = {locale.lower(): locale for locale in template.locales}
    parts = requested.lower().split("-") if _LANGUAGE_TAG.fullmatch(requested) else []
    while parts:
        fitting = known.get("-".join(parts))
        if fitting is not None:
            return fitting, False
        parts.pop()
        if parts and len(parts[-1]) == 1:
            parts.pop()
    return template.default_locale, True


def _load_problem(root: Path, template_id: str, revision: str) -> str | None:
    try:
        _load(root, template_id, revision)
    except TemplateBroken as broken:
        return str(broken)
    return None


@cache
def _known(root: Path) -> frozenset[tuple[str, str]]:
    return frozenset(list_revisions(root))


@cache
def _load(root: Path, template_id: str, revision: str) -> Template:
    sources = _read(root / template_id / revision)
    try:
        settings = tomllib.loads(sources["template.toml"].decode())
        texts = _compile({name: source.decode() for name, source in sources.items()})
        template = Template(
            id=template_id,
            revision=revision,
            default_locale=settings["default_locale"],
            locales=_locales(sources),
            classification=settings["sms"]["classification"],
            source_digest=_digest(sources),
            texts=texts,
        )
    except (KeyError, ValueError, jinja2.TemplateError) as error:
        message = f"template {template_id} revision {revision}: {type(error).__name__}"
        raise TemplateBroken(message) from error
    _check_whole(template, sources)
    return template


def _read(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in files}
    return {name: names[name].read_bytes() for name in sorted(names) if not _is_hidden(name)}


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _digest(sources: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, source in sorted(sources.items()):
        digest.update(f"{len(name.encode())}:{name}:{len(source)}:".encode())
        digest.update(source)
    return digest.hexdigest()


def _locales(sources: Mapping[str, bytes]) -> tuple[str, ...]:
    return tuple(sorted({name.partition("/")[0] for name in sources if "/" in name}))


def _compile(sources: dict[str, str]) -> jinja2.Environment:
    """Strict about missing names; markup is escaped in the HTML part and only there."""
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(sources),
        undefined=jinja2.StrictUndefined,
        autoescape=lambda name: str(name).endswith(".html"),  # noqa: S701 - not in plain text
        auto_reload=False,
        trim_blocks=True,
    )
    for name in sources:
        if "/" in name:
            environment.get_template(name)
    return environment


def _check_whole(template: Template, sources: Mapping[str, bytes]) -> None:
    missing = [
        f"{locale}/{part}"
        for locale in (*template.locales, template.default_locale)
        for part in _PARTS
        if f"{locale}/{part}" not in sources
    ]
    if missing:
        message = f"template {template.id} revision {template.revision} lacks {missing[0]}"
        raise TemplateBroken(message)
