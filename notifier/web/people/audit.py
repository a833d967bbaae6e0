"""Who looked at what: a page for auditors, and looking at it is written down like any look."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from flask import Blueprint
from flask.typing import ResponseReturnValue

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Read
from notifier.store.reads.audit import AuditRow, AuditWanted, load_audit
from notifier.store.reads.trail_checkpoints import newest
from notifier.web.people.asked import DAY, ID, NAME, WORD, asked, days
from notifier.web.people.lists import Dated, List, answer_list
from notifier.web.people.rows import Cell
from notifier.web.people.visit import needs, services, write_down

if TYPE_CHECKING:
    from notifier.web.people.asked import Filter

ACTIONS: Final = ("", "look_up", "view", "list", "open", "act", "export", "download", "sign_in")
FILTERS: Final[Mapping[str, Filter]] = {
    "person": NAME, "action": ACTIONS, "kind": WORD, "notice": ID, "since": DAY, "until": DAY,
}  # fmt: skip
KINDS: Final = (
    "account", "alert", "alerts", "audit", "destination", "event", "expired", "export", "exports",
    "failures", "halt", "halts", "id", "incident", "link", "notice", "password", "pending",
    "policy", "release", "reset_request", "runbook", "runbooks", "sender_domains", "stop", "system",
    "ticket", "trail", "unknown",
)  # fmt: skip
"""Kinds of things that are offered; any other word may be asked for as well."""
_NOTICE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
COLUMNS: Final = (
    "at", "person", "role", "action", "object_kind", "object", "hits", "outcome", "reason",
    "request_id",
)  # fmt: skip
_DIGEST: Final = re.compile(r"[0-9a-f]{16}")


def wanted_of(chosen: Mapping[str, str]) -> AuditWanted:
    """The filter of an address. Raises `Unfit` for days that are none, or in no order."""
    return AuditWanted(
        chosen.get("person"), chosen.get("action"), chosen.get("kind"), *days(chosen),
        chosen.get("notice"),
    )  # fmt: skip


def object_of(row: AuditRow) -> str | None:
    """What was looked at. What was looked for is shown as a keyed digest, found or not."""
    if row.object_ref is None or row.action != "look_up" or _DIGEST.fullmatch(row.object_ref):
        return row.object_ref
    key = services().fingerprint_keys[0]
    return hmac.new(key, row.object_ref.encode(), hashlib.sha256).hexdigest()[:16]


def notice_of(row: AuditRow) -> str | None:
    """The id of the notice that was opened, listed or acted on, where it was one."""
    ref = row.object_ref
    of_one = row.action == "view" and row.object_kind == "notice"
    acted = row.action == "act" and row.object_kind in {"ticket", "look", "note", "stop"}
    return ref if ref and (of_one or acted) and _NOTICE.fullmatch(ref) else None


def audit_cells(row: AuditRow, _: Dated) -> dict[str, Cell]:
    """One row as a program gets it."""
    return {
        "at": row.at, "person": row.person, "role": row.role, "action": row.action,
        "object_kind": row.object_kind, "object": object_of(row), "hits": row.hits,
        "outcome": row.outcome, "reason": row.reason, "request_id": row.request_id,
    }  # fmt: skip


AUDIT: Final = List("audit", 0, COLUMNS, audit_cells)


@needs(Permission.VIEW_AUDIT)
def audit() -> ResponseReturnValue:
    """Looks and acts, newest first."""
    wish = asked(**FILTERS)
    which = wanted_of(wish.chosen)
    with services().database.connection() as connection:
        page = load_audit(connection, wish.walk, which)
        sealed = newest(connection)
        write_down(connection, Read("list", "audit", _named(wish.chosen), len(page.rows)))
    return answer_list(
        AUDIT, page, wish, object_of=object_of, notice_of=notice_of,
        actions=ACTIONS, kinds=KINDS, sealed=sealed,
    )  # fmt: skip


def _named(chosen: Mapping[str, str]) -> str | None:
    return "&".join(f"{name}={chosen[name]}" for name in sorted(chosen)) or None


def add_audit(blueprint: Blueprint) -> None:
    """Put the page at its address."""
    blueprint.add_url_rule("/audit", view_func=audit)
