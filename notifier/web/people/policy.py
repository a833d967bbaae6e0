"""The policy: its values as a form, what a draft would change, and every revision there was.

Three steps: fill in, see what changes and what follows, keep with a reason. Nothing is kept on
the server in between; the forms carry the draft and the revision that it started from, and are
refused with the newer one where another was kept meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Outcome, Read
from notifier.domain.policy import Policy, PolicyInvalid, Problem
from notifier.domain.policy_drafts import Change, changes, flat, to_toml
from notifier.domain.remarks import LONGEST_REASON
from notifier.flow import policies as flow
from notifier.flow.policies import PolicyRefused, StalePolicy
from notifier.store.reads.policies import (
    History,
    NoRevision,
    RevisionRow,
    learnt_life_s,
    load_history,
    load_pinned,
    load_revision,
)
from notifier.web.people import (
    policy_effects,
    policy_form,
    policy_margins,
    policy_times,
    policy_words,
)
from notifier.web.people import rows as twins
from notifier.web.people.asked import NUMBER, asked
from notifier.web.people.notebook import Notebook, fit_to_keep
from notifier.web.people.policy_draft import Draft, drafted, full, proposed, rebased
from notifier.web.people.rows import Cell
from notifier.web.people.visit import needs, services, visitor, wanted, write_down

COLUMNS: Final = (
    "revision", "created_at", "author", "reason", "changed", "open_notices", "digest",
)  # fmt: skip
NOTHING_DIFFERS: Final = "Nothing differs from the revision in force, so there is nothing to keep."


@needs(Permission.VIEW_POLICY)
def policy() -> ResponseReturnValue:
    """The values in force as a form, or as a table for whoever may not change them."""
    wish = asked(before=NUMBER)
    before = int(wish.chosen["before"]) if "before" in wish.chosen else None
    with services().database.connection() as connection:
        history = load_history(connection, before=before)
        write_down(connection, Read("list", "policy", None, len(history.rows)))
    cells = map(revision_cells, history.rows)
    twin = twins.for_programs(wanted(), "policy", COLUMNS, cells, history.as_of, {})
    if twin is not None:
        return twin
    newest = _revision(history.newest)
    draft = Draft(policy_form.typed_of(full(newest)), newest, newest)
    return _form_page(draft, history=history, wish=wish)


@needs(Permission.CHANGE_POLICY)
def check_policy() -> ResponseReturnValue:
    """Show what the draft would change; or the form again, to go on or with what is wrong."""
    draft = drafted()
    match request.form.get("act"):
        case "edit":
            return _form_page(draft)
        case "propose":
            return _form_page(proposed(draft))
        case _:
            return _judged(draft)


@needs(Permission.CHANGE_POLICY)
def keep_policy() -> ResponseReturnValue:
    """Make the draft the revision in force."""
    draft, reason = drafted(), request.form.get("reason", "")
    note = Notebook(str(draft.base.revision + 1), "policy", fit_to_keep(reason, LONGEST_REASON))
    note.write(Outcome.ASKED)
    try:
        kept = flow.keep(
            services().database,
            Policy.from_document(draft.document),
            base=draft.base.revision,
            author=visitor().name,
            reason=reason,
        )
    except (PolicyInvalid, PolicyRefused) as error:
        note.write(Outcome.NOT_DONE)
        is_reason = isinstance(error, PolicyRefused)
        return _judged(draft, fault=f"{error}.".capitalize() if is_reason else None)
    except StalePolicy:
        note.write(Outcome.STALE)
        return _stale_page(drafted())
    note.write(Outcome.DONE)
    return redirect(url_for("people.policy_revision", revision=kept), 303)


@needs(Permission.VIEW_POLICY)
def policy_revision(revision: int) -> ResponseReturnValue:
    """One revision: who kept it when and why, what it changed, and which notices follow it."""
    with services().database.connection() as connection:
        row = load_revision(connection, revision)
        if row is None:
            raise NotFound
        pinned = load_pinned(connection, revision)
        newest = load_history(connection, size=1)
        write_down(connection, Read("view", "policy", str(revision), row.open_notices))
    return render_template(
        "pages/policy_revision.html", row=row, changes=_changes_of(row), pinned=pinned,
        is_newest=revision == newest.newest, as_of=newest.as_of, told=policy_words.told,
        values=flat(full(row)), groups=policy_form.grouped(flat(full(row))),
        words_of=policy_words.words_of,
    )  # fmt: skip


@needs(Permission.VIEW_POLICY)
def policy_file(revision: int) -> ResponseReturnValue:
    """One revision as the file that the setting of the policy takes."""
    with services().database.connection() as connection:
        row = load_revision(connection, revision)
        if row is None:
            raise NotFound
        write_down(connection, Read("view", "policy_file", str(revision)))
    name = f"policy-{revision}.toml"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(to_toml(full(row)), content_type="application/toml", headers=headers)


def revision_cells(row: RevisionRow) -> dict[str, Cell]:
    """One revision as a program gets it."""
    return {
        "revision": row.revision, "created_at": row.created_at, "author": row.author,
        "reason": row.reason, "changed": ", ".join(each.name for each in _changes_of(row)),
        "open_notices": row.open_notices, "digest": row.digest,
    }  # fmt: skip


def _judged(draft: Draft, *, fault: str | None = None) -> ResponseReturnValue:
    """The page of changes; the form again where the draft cannot be used."""
    if draft.is_stale:
        return _stale_page(draft)
    try:
        new = Policy.from_document(draft.document)
    except PolicyInvalid as error:
        return _form_page(draft, problems=error.problems, status=422)
    old = Policy.from_stored(draft.base.document)
    if new == old:
        return _form_page(draft, fault=NOTHING_DIFFERS, status=422)
    return _changes_page(draft, old, new, fault=fault)


def _changes_page(
    draft: Draft, old: Policy, new: Policy, *, fault: str | None
) -> ResponseReturnValue:
    with services().database.connection() as connection:
        life_s = learnt_life_s(connection)
        latencies = policy_margins.load(connection)
        write_down(connection, Read("view", "policy_draft", str(draft.base.revision)))
    found = changes(old.to_document(), new.to_document())
    return make_response(
        render_template(
            "pages/policy_changes.html", draft=draft, told=policy_words.told,
            changes=found, times=policy_times.times_of(found),
            words_of=policy_words.words_of, following=policy_effects.followings(old, new, life_s),
            tried=policy_effects.tried(old, new, latencies, life_s), fault=fault,
            reason=request.form.get("reason", ""), longest=LONGEST_REASON,
            within_s=flow.RULES_WITHIN_S,
        ),
        422 if fault else 200,
    )  # fmt: skip


def _stale_page(draft: Draft) -> ResponseReturnValue:
    on_newest, both = rebased(draft)
    newer = changes(full(draft.base), full(draft.newest))
    return _form_page(on_newest, newer=newer, both=both, status=409)


def _form_page(  # noqa: PLR0913 - what may stand on one page, by name
    draft: Draft,
    *,
    history: History | None = None,
    wish: Any = None,
    problems: list[Problem] | tuple[Problem, ...] = (),
    fault: str | None = None,
    newer: list[Change] | tuple[Change, ...] = (),
    both: list[str] | tuple[str, ...] = (),
    status: int = 200,
) -> ResponseReturnValue:
    with services().database.connection() as connection:
        margins = policy_margins.beside(connection, Policy.from_stored(draft.base.document))
        if history is None:
            history = load_history(connection)
            write_down(connection, Read("list", "policy", None, len(history.rows)))
    names = {each.pointer: policy_form.field_of(each, draft.typed) for each in problems}
    return make_response(
        render_template(
            "pages/policy.html", draft=draft, form=policy_form.form_of(draft.typed, problems),
            groups=policy_form.grouped(draft.typed), times=policy_times.TIMES,
            words_of=policy_words.words_of, problems=problems, names=names,
            unfolded=_unfolded([*filter(None, names.values()), *both]),
            fault=fault, newer=newer, both=both, margins=margins,
            history=history, changes_of=_changes_of, told=policy_words.told,
            may_change=visitor().may(Permission.CHANGE_POLICY), within_s=flow.RULES_WITHIN_S,
            wish=replace(wish or asked(), endpoint="people.policy"),
        ),
        status,
    )  # fmt: skip


def _unfolded(names: Iterable[str]) -> set[str]:
    """The parts of the form that are open: the first ones, and those with something to look at."""
    wanted = set(names)
    return {"time", "doubt"} | {
        each.key for each in policy_words.GROUPS if wanted & set(each.values)
    }


def _revision(number: int) -> RevisionRow:
    with services().database.connection() as connection:
        row = load_revision(connection, number)
    if row is None:
        raise NotFound
    return row


def _changes_of(row: RevisionRow) -> list[Change]:
    """What the revision changed; the first one changed nothing."""
    if row.before is None:
        return []
    return changes(Policy.from_stored(row.before).to_document(), full(row))


def _nothing_yet(error: NoRevision) -> ResponseReturnValue:
    """Where no process has begun the policy: nothing to show, and nothing to change."""
    with services().database.connection() as connection:
        write_down(connection, Read("list", "policy", None, 0))
    if plain := twins.for_programs(wanted(), "policy", COLUMNS, (), error.as_of, {}):
        return plain
    status = 200 if request.method == "GET" else 409
    return make_response(render_template("pages/policy_none.html"), status)


def add_policy(blueprint: Blueprint) -> None:
    """Put the pages at their addresses."""
    blueprint.register_error_handler(NoRevision, _nothing_yet)
    add, one = blueprint.add_url_rule, "/policy/revisions/<int:revision>"
    add("/policy", view_func=policy, methods=["GET"])
    add("/policy", view_func=check_policy, methods=["POST"])
    add("/policy/revisions", view_func=keep_policy, methods=["POST"])
    add(one, view_func=policy_revision)
    add(f"{one}/policy.toml", view_func=policy_file)
