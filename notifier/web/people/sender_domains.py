"""What DNS says about the domains that we send from, with every change of it.

Nothing is looked up here: a page shows what a worker observed, and can have it observed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Outcome, Read
from notifier.signals.sender_watch import queue_check
from notifier.store.reads.sender_domains import (
    SenderRow,
    SendersWanted,
    load_domains,
    load_senders,
    load_standing,
)
from notifier.web.people.asked import NAME, asked
from notifier.web.people.lists import Dated, List, answer_list
from notifier.web.people.phrases import Badge, Hue
from notifier.web.people.rows import Cell
from notifier.web.people.visit import needs, services, visitor, write_down

if TYPE_CHECKING:
    from notifier.web.people.asked import Filter

VERDICTS: Final[Mapping[str, Badge]] = {
    "pass": Badge("pass", Hue.OK, "check"),
    "warn": Badge("warning", Hue.WAITING, "clock"),
    "fail": Badge("fail", Hue.FAILED, "cross"),
    "unknown": Badge("unknown", Hue.UNKNOWN, "question"),
}
TITLES: Final = {"spf": "SPF", "dkim": "DKIM", "dmarc": "DMARC", "alignment": "Alignment"}
FILTERS: Final[Mapping[str, Filter]] = {"domain": NAME, "verdict": ("", *VERDICTS)}
COLUMNS: Final = (
    "domain", "kind", "selector", "name", "verdict", "texts", "reasons", "facts", "resolver",
    "ttl_s", "checks", "first_seen_at", "last_seen_at", "ended_at", "provider_claims",
)  # fmt: skip
NOT_ASKED: Final = "not asked"
"""Of providers: what they claim about a domain takes credentials that sending does not."""


@dataclass(frozen=True, slots=True)
class Change:
    """Parts of a record that went and came, against the last look-up that did not fail."""

    gone: tuple[str, ...]
    new: tuple[str, ...]


def change_of(row: SenderRow) -> Change | None:
    """What differs from the record before; None for the first, or where nothing does."""
    if row.before is None or (row.verdict == "unknown" and not row.texts):
        return None
    before, after = _parts(row.kind, row.before), _parts(row.kind, row.texts)
    gone = tuple(each for each in before if each not in after)
    new = tuple(each for each in after if each not in before)
    if gone or new:
        return Change(gone, new)
    return None if row.before == row.texts else Change(row.before, row.texts)


def _parts(kind: str, texts: tuple[str, ...]) -> list[str]:
    """Terms of SPF and tags of the others: what a person changes in one go."""
    between = " " if kind == "spf" else ";"
    parts = (part.strip() for text in texts for part in text.split(between))
    return [each for each in parts if each]


def sender_cells(row: SenderRow, _: Dated) -> dict[str, Cell]:
    """One row as a program gets it."""
    return {
        "domain": row.domain, "kind": row.kind, "selector": row.selector or None,
        "name": row.name, "verdict": row.verdict, "texts": "\n".join(row.texts),
        "reasons": "\n".join(row.reasons),
        "facts": "\n".join(f"{name}={row.facts[name]}" for name in sorted(row.facts)),
        "resolver": row.resolver or None, "ttl_s": row.ttl_s, "checks": row.checks,
        "first_seen_at": row.first_seen_at, "last_seen_at": row.last_seen_at,
        "ended_at": row.ended_at, "provider_claims": NOT_ASKED,
    }  # fmt: skip


LIST: Final = List("sender_domains", 0, COLUMNS, sender_cells)


def wanted_of(chosen: Mapping[str, str]) -> SendersWanted:
    """The filter of an address."""
    return SendersWanted(chosen.get("domain"), chosen.get("verdict"))


@needs(Permission.VIEW_LISTS)
def sender_domains() -> ResponseReturnValue:
    """How the records stand, and their changes, newest first."""
    wish = asked(**FILTERS)
    which = wanted_of(wish.chosen)
    with services().database.connection() as connection:
        page = load_senders(connection, wish.walk, which)
        standing = load_standing(connection, which)
        domains = load_domains(connection)
        named = "/".join(filter(None, (which.domain, which.verdict))) or None
        write_down(connection, Read("list", "sender_domains", named, len(page.rows)))
    return answer_list(
        LIST, page, wish, standing=standing, domains=domains, verdicts=VERDICTS, titles=TITLES,
        change_of=change_of, not_asked=NOT_ASKED, choices=("", *VERDICTS),
        may_check=visitor().may(Permission.CHECK_SENDERS),
    )  # fmt: skip


@needs(Permission.CHECK_SENDERS)
def check_sender() -> ResponseReturnValue:
    """Have a domain checked by the next worker that looks; the page waits for nothing."""
    domain = request.form.get("domain", "")
    known = queue_check(services().database, domain, visitor().name)
    with services().database.connection() as connection:
        outcome = Outcome.ASKED if known else Outcome.NOT_DONE
        write_down(
            connection, Read("act", "check_sender", domain if known else None, outcome=outcome)
        )
    if not known:
        raise NotFound
    return redirect(url_for("people.sender_domains"), 303)


def add_sender_domains(blueprint: Blueprint) -> None:
    """Put the page at its address."""
    add = blueprint.add_url_rule
    add("/sender-domains", view_func=sender_domains, methods=["GET"])
    add("/sender-domains", view_func=check_sender, methods=["POST"])
