"""The lists that can be taken out as files: their columns, what is masked, and how they are read.

Each reads through the same function as its page, so a file holds exactly what the screen shows,
all pages of it, as of the instant of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from notifier.accounts.permissions import Permission, Role, may
from notifier.domain.tables import Row
from notifier.store.reads import look_up as look_ups
from notifier.store.reads.audit import load_audit
from notifier.store.reads.expired import load_expired
from notifier.store.reads.failures import Wanted, load_failures
from notifier.store.reads.halts import load_halt_page
from notifier.store.reads.look_up import Key
from notifier.store.reads.paging import Cursor, Page, Walk
from notifier.store.reads.pending import Stage, load_pending
from notifier.store.reads.sender_domains import load_senders
from notifier.store.reads.unknown import load_unknown
from notifier.web.people import audit, failures, halts, lists, sender_domains
from notifier.web.people.asked import ID, Filter, checked
from notifier.web.people.errors import Unfit

if TYPE_CHECKING:
    from notifier.flow.exports import Export
    from notifier.store.database import PooledConnection

Load = Callable[["PooledConnection", Walk, "Export"], Page[Any]]


@dataclass(frozen=True, slots=True)
class ListSource:
    """A list with pages. `title` is how people call it; `filters` are those of its address.

    `judge` raises `Unfit` for filters that are fine each by itself and come to no list.
    """

    title: str
    needs: Permission
    columns: Sequence[str]
    masked: Sequence[str]
    filters: Mapping[str, Filter]
    load: Load
    cells: Callable[[Any, Any], Row]
    judge: Callable[[Mapping[str, str]], object] = lambda _: None

    def chosen(self, given: Mapping[str, str]) -> dict[str, str]:
        """The filters that an address or a form names, judged whole. Raises `Unfit`."""
        chosen = checked(self.filters, given)
        self.judge(chosen)
        return chosen

    def batch(
        self, connection: PooledConnection, export: Export, place: Any, size: int
    ) -> tuple[Sequence[Row], Any]:
        """The next rows and the key to go on from."""
        cursor = None
        if place:
            cursor = Cursor(datetime.fromisoformat(place[0]), place[1], upto=export.as_of)
        page = self.load(connection, Walk(size, cursor, export.as_of), export)
        rows = [self.cells(row, page) for row in page.rows]
        after = page.later
        return rows, [after.at.isoformat(), after.row_id] if after else None


def _pending(connection: PooledConnection, walk: Walk, export: Export) -> Page[Any]:
    return load_pending(connection, walk, Stage(export.parameters.get("stage", Stage.ALL)))


def _unknown(connection: PooledConnection, walk: Walk, export: Export) -> Page[Any]:
    asked = export.parameters
    return load_unknown(connection, walk, asked.get("channel"), asked.get("provider"))


def _expired(connection: PooledConnection, walk: Walk, export: Export) -> Page[Any]:
    return load_expired(connection, walk, export.parameters.get("region"))


def _failures(connection: PooledConnection, walk: Walk, export: Export) -> Page[Any]:
    asked = export.parameters
    span = failures.RANGES[asked.get("range", next(iter(failures.RANGES)))]
    cell = Wanted(span, *map(asked.get, ("reason", "channel", "provider", "region")))
    with_codes = may(Role(export.role), Permission.SEE_PROVIDER_CODES)
    return load_failures(connection, walk, cell, with_codes=with_codes)


def _audit(connection: PooledConnection, walk: Walk, export: Export) -> Page[Any]:
    return load_audit(connection, walk, audit.wanted_of(export.parameters))


def _halts(connection: PooledConnection, walk: Walk, _: Export) -> Page[Any]:
    return load_halt_page(connection, walk)


def _senders(connection: PooledConnection, walk: Walk, export: Export) -> Page[Any]:
    return load_senders(connection, walk, sender_domains.wanted_of(export.parameters))


def _look_up(key: Key) -> Load:
    def load(connection: PooledConnection, _: Walk, export: Export) -> Page[Any]:
        found = look_ups.look_up(connection, key, export.parameters["id"])
        return Page(found.rows, None, None, len(found.rows), found.more, found.as_of)

    return load


def _has_id(chosen: Mapping[str, str]) -> None:
    if "id" not in chosen:
        raise Unfit("id", "is the id that was looked up")


def _of(which: lists.List, title: str, load: Load, **more: Any) -> ListSource:
    given: dict[str, Any] = {
        "needs": Permission.VIEW_LISTS,
        "masked": [each for each in which.columns if each.endswith("mask")],
        "filters": {},
    }
    return ListSource(
        title=title, columns=which.columns, load=load, cells=which.plain, **given | more
    )


SOURCES: Final[Mapping[str, ListSource]] = {
    "pending": _of(lists.PENDING, "Pending notices", _pending, filters={"stage": lists.STAGES}),
    "unknown": _of(lists.UNKNOWN, "Unknown outcomes", _unknown, filters=lists.UNKNOWN_FILTERS),
    "expired": _of(lists.EXPIRED, "Expired notices", _expired, filters=lists.EXPIRED_FILTERS),
    "failures": _of(failures.LISTED, "Channel failures", _failures, filters=failures.FILTERS),
    "audit": _of(
        audit.AUDIT, "Audit of looks and acts", _audit,
        filters=audit.FILTERS, needs=Permission.VIEW_AUDIT, judge=audit.wanted_of,
    ),
    "halts": ListSource(
        "Halts", Permission.VIEW_HALTS, halts.COLUMNS, (), {}, _halts,
        lambda row, _: halts.halt_cells(row),
    ),
    "sender_domains": _of(
        sender_domains.LIST, "Sender domains", _senders, filters=sender_domains.FILTERS
    ),
    **{
        key.value: ListSource(
            f"Notices found by {key.replace('_', ' ')}", Permission.LOOK_UP,
            lists.NOTICE_COLUMNS, ("email_mask", "sms_mask"), {"id": ID}, _look_up(key),
            lists.notice_cells, _has_id,
        )
        for key in (Key.TICKET, Key.EVENT, Key.RESET_REQUEST, Key.ACCOUNT)
    },
}  # fmt: skip
