"""The form of a policy: a field for each value, and what was typed made a document again.

Nothing is judged here. Text that is no number goes on as the text it is, so that the check of
the whole document, which the file passes too, says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from werkzeug.datastructures import MultiDict
from wtforms import SelectField, StringField
from wtforms.fields.choices import SelectChoice  # type: ignore[attr-defined] # stubs are older
from wtforms.form import BaseForm

from notifier.domain.policy import DEFAULTS, Problem
from notifier.domain.policy_drafts import flat, nested
from notifier.web.people.policy_words import CHOICES, GROUPS, SHORT_UNITS, YES_NO, told, words_of

LONGEST: Final = 2_000
_SPLIT: Final = re.compile(r"[,\s]+")
_KINDS: Final = flat(DEFAULTS)

Typed = Mapping[str, str]
"""What stands in the fields, by the names of the values."""


def typed_of(document: Mapping[str, Any]) -> dict[str, str]:
    """A stored document as the form shows it."""
    return {name: told(value) for name, value in flat(document).items()}


def typed_in(sent: Mapping[str, str], base: Typed) -> dict[str, str]:
    """What was sent, with the base's value for what was not."""
    return {name: sent.get(name, value)[:LONGEST] for name, value in base.items()}


def document_of(typed: Typed) -> dict[str, Any]:
    """The document that the fields come to, whether it can be used or not."""
    return nested({name: _value(name, text.strip()) for name, text in typed.items()})


def form_of(typed: Typed, problems: Iterable[Problem] = ()) -> BaseForm:
    """The fields, filled in, each with what is wrong with it."""
    form = BaseForm({name: _field(name) for name in typed})
    form.process(MultiDict(dict(typed)))
    for problem in problems:
        field = form[name] if (name := field_of(problem, typed)) else None
        if field is not None:
            field.errors = (*field.errors, problem.message)
            field.render_kw = {**(field.render_kw or {}), "aria-invalid": "true"}
    return form


def field_of(problem: Problem, typed: Typed) -> str | None:
    """The value that a problem is about; None where it is about several."""
    name = problem.pointer.removeprefix("/")
    parts = name.split("/")
    while parts and "/".join(parts) not in typed:
        parts.pop()
    return "/".join(parts) or _first_of(name, typed)


def grouped(names: Iterable[str]) -> list[tuple[Any, list[str]]]:
    """The groups of the page with those of these values that are in each."""
    wanted = set(names)
    return [(group, [each for each in group.values if each in wanted]) for group in GROUPS]


def _first_of(table: str, typed: Typed) -> str | None:
    """A fault of a whole table stands beside its first value."""
    return next((name for name in typed if table and name.startswith(f"{table}/")), None)


def _field(name: str) -> Any:
    words = words_of(name)
    attributes = {
        "id": name, "autocomplete": "off", "autocapitalize": "off", "spellcheck": "false",
        "aria-describedby": f"{name}-hint", "class": "short" if words.unit in SHORT_UNITS else "",
    }  # fmt: skip
    choices = CHOICES.get(name) or (YES_NO if isinstance(_KINDS.get(name), bool) else {})
    if choices:
        options = [SelectChoice(value, label) for value, label in choices.items()]
        return SelectField(words.label, choices=options, render_kw=attributes)
    return StringField(words.label, render_kw=attributes)


def _value(name: str, text: str) -> Any:
    match _KINDS.get(name, 0.0):
        case bool():
            return {"yes": True, "no": False}.get(text, text)
        case float() | int():
            return _number(text)
        case [float(), *_]:
            return [_number(each) for each in _SPLIT.split(text) if each]
        case list():
            return [each for each in _SPLIT.split(text) if each]
        case _ if name == "regions/sms" and text.lower() != "any":
            return [each.upper() for each in _SPLIT.split(text) if each]
        case _:
            return text.lower() if name == "regions/sms" else text


def _number(text: str) -> Any:
    """A number where it is one; what only looks like one to a program is no number."""
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        return text
    return int(text) if text.isdecimal() else float(text)
