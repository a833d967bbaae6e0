"""What is being made of the policy: typed values, the revision they started from, the newest one.

Nothing of it is kept on the server; each form carries it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flask import request

from notifier.domain.policy import Policy
from notifier.store.reads.policies import RevisionRow, load_history, load_revision
from notifier.web.people import policy_form, policy_margins
from notifier.web.people.asked import NUMBER, checked
from notifier.web.people.policy_form import Typed
from notifier.web.people.visit import services

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class Draft:
    """What was typed, and the revision that it started from. `newest` is the one in force."""

    typed: Typed
    base: RevisionRow
    newest: RevisionRow

    @property
    def is_stale(self) -> bool:
        """Whether another revision was kept meanwhile."""
        return self.base.revision != self.newest.revision

    @property
    def document(self) -> dict[str, Any]:
        """What was typed, as a document."""
        return policy_form.document_of(self.typed)


def drafted() -> Draft:
    """The draft that a form carries. Raises `Unfit` where it carries no revision of ours."""
    number = checked({"revision": NUMBER}, request.form).get("revision", "0")
    with services().database.connection() as connection:
        newest = _newest(connection)
        base = load_revision(connection, int(number)) or newest
    typed = policy_form.typed_in(request.form, policy_form.typed_of(full(base)))
    return Draft(typed, base, newest)


def rebased(draft: Draft) -> tuple[Draft, list[str]]:
    """The draft on the newest revision: what its author left alone is as it stands there.

    The names are those that both changed, each in its own way; the author's word stays.
    """
    was = policy_form.typed_of(full(draft.base))
    now = policy_form.typed_of(full(draft.newest))
    typed = {
        name: now[name] if draft.typed.get(name) in {None, was.get(name)} else draft.typed[name]
        for name in now
    }
    both = [
        name for name in now
        if was.get(name) != now[name] != typed[name] != was.get(name)
    ]  # fmt: skip
    return Draft(typed, draft.newest, draft.newest), both


def proposed(draft: Draft) -> Draft:
    """The draft with every proposal in it that could be made."""
    with services().database.connection() as connection:
        margins = policy_margins.beside(connection, Policy.from_stored(draft.base.document))
    put_in = policy_form.typed_of(margins.document)
    names = {name for name, new in put_in.items() if new != draft.typed.get(name)}
    kept = {name for name in names if name in margins.proposed}
    return replace(draft, typed={**draft.typed, **{name: put_in[name] for name in kept}})


def full(row: RevisionRow) -> dict[str, Any]:
    """The revision's document with every key, also those that came after it."""
    return Policy.from_stored(row.document).to_document()


def _newest(connection: PooledConnection) -> RevisionRow:
    return load_history(connection, size=1).rows[0]
