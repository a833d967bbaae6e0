"""Whole lists and trails as files, each with a manifest that says what it holds and proves it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import Forbidden, NotFound

from notifier.accounts import rate_limits
from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Outcome, Read
from notifier.domain import remarks, tables
from notifier.domain.remarks import RemarkUnfit, check_remark
from notifier.flow.exports import FORMATS, TRAIL, Exporter, Order
from notifier.store.reads.exports import ExportRow, load_exports, one_export
from notifier.web.people.asked import DAY, SHORT, asked, checked, days
from notifier.web.people.errors import Unfit
from notifier.web.people.export_sources import SOURCES, ListSource
from notifier.web.people.lists import Dated, List, answer_list
from notifier.web.people.preferences import preferences
from notifier.web.people.rows import TYPES, Cell
from notifier.web.people.visit import Form, needs, services, visitor, wanted, write_down
from notifier.web.requests import request_id

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

LIVE_S: Final = 5
COLUMNS: Final = (
    "export_id", "requested_by", "role", "requested_at", "list", "filter", "format", "state",
    "rows", "bytes", "sha256", "masked_fields", "finished_at", "expires_at", "reason",
)  # fmt: skip


def export_cells(row: ExportRow, _: Dated) -> dict[str, Cell]:
    """One export as a program gets it."""
    return {
        "export_id": str(row.export_id), "requested_by": row.requested_by, "role": row.role,
        "requested_at": row.requested_at, "list": row.what, "filter": row.words,
        "format": row.format, "state": row.state, "rows": row.rows, "bytes": row.bytes,
        "sha256": row.digest, "masked_fields": " ".join(row.masked),
        "finished_at": row.finished_at, "expires_at": row.expires_at, "reason": row.reason,
    }  # fmt: skip


LIST: Final = List("exports", LIVE_S, COLUMNS, export_cells, is_taken_out=False)


@needs(Permission.VIEW_LISTS)
def exports() -> ResponseReturnValue:
    """One's own exports; an auditor sees everybody's."""
    wish = asked(SHORT)
    with services().database.connection() as connection:
        page = load_exports(connection, wish.walk, _whose())
        write_down(connection, Read("list", "exports", None, len(page.rows)))
    me = visitor()
    return answer_list(
        LIST, page, wish, title_of=title_of, may_export=me.may(Permission.EXPORT),
        may_export_trail=me.may(Permission.EXPORT_TRAIL), of_all=_whose() is None,
        sources={name: each for name, each in SOURCES.items() if me.may(each.needs)},
    )  # fmt: skip


@needs(Permission.EXPORT)
def export_form(what: str) -> ResponseReturnValue:
    """What would be taken out, and in which format."""
    source = _source(what)
    chosen = source.chosen(request.args)
    return _form(what, source, chosen)


@needs(Permission.EXPORT)
def order_export(what: str) -> ResponseReturnValue:
    """Take a list out: at once where it is small, by and by where it is not."""
    source = _source(what)
    chosen = source.chosen(request.form)
    form = _format(request.form.get("format", ""))
    try:
        reason = check_remark(request.form["reason"]) if request.form.get("reason") else None
    except RemarkUnfit:
        return _form(what, source, chosen, fault=f"Write {remarks.WANTED}.", status=422)
    return _ordered(what, chosen, words_of(chosen), form, reason)


@needs(Permission.EXPORT_TRAIL)
def order_trail() -> ResponseReturnValue:
    """Take the trail out: of one notice, or of those with a step in a span of days."""
    notice = request.form.get("notice", "").strip()
    span = checked({"since": DAY, "until": DAY}, request.form)
    if notice:
        return _ordered(TRAIL, {"notice": str(_uuid(notice))}, f"notice {notice}", "ndjson", None)
    days(span)
    if not span:
        raise Unfit("notice", "is a notice's id, where no day is given")
    return _ordered(TRAIL, span, words_of(span), "ndjson", None)


@needs(Permission.EXPORT)
def export(export_id: UUID) -> ResponseReturnValue:
    """One export: how far it is, its manifest, and the file."""
    row = _read(export_id, "view")
    if wanted() is Form.JSON:
        return Response(json.dumps(manifest(row)), content_type=TYPES[Form.JSON])
    folder = "fragments/_" if wanted() is Form.FRAGMENT else "pages/"
    return render_template(
        f"{folder}export.html", row=row, wish=asked(), file=file_name(row), title_of=title_of,
        live_s=LIVE_S if row.state == "waiting" else None, now=services().now(),
    )  # fmt: skip


@needs(Permission.EXPORT)
def export_manifest(export_id: UUID) -> ResponseReturnValue:
    """What the file is: who, when, which filter, how many rows, and the digest."""
    row = _read(export_id, "view")
    text = json.dumps(manifest(row), indent=2, ensure_ascii=False)
    return _attached(text, TYPES[Form.JSON], f"{file_name(row)}.manifest.json")


@needs(Permission.EXPORT)
def export_file(export_id: UUID) -> ResponseReturnValue:
    """The file itself."""
    with ExitStack() as place:
        place.enter_context(services().downloads.one_more(visitor().name))
        row = _read(export_id, "download")
        if row.state != "ready" or row.digest is None:
            raise NotFound
        response = _attached(_exporter().read(export_id), TYPES[Form(row.format)], file_name(row))
        response.content_length = row.bytes
        digest = b64encode(bytes.fromhex(row.digest)).decode()
        response.headers["Repr-Digest"] = f"sha-256=:{digest}:"
        response.call_on_close(place.pop_all().close)
        return response


def manifest(row: ExportRow) -> dict[str, Any]:
    """What belongs to the file and is no part of it."""
    return {
        "export_id": str(row.export_id),
        "file": file_name(row),
        "list": row.what,
        "made_for": {"person": row.requested_by, "role": row.role, "reason": row.reason},
        "requested_at": tables.exact(row.requested_at),
        "as_of": tables.exact(row.as_of),
        "finished_at": tables.exact(row.finished_at) if row.finished_at else None,
        "filter": {"words": row.words, "parameters": dict(row.parameters)},
        "format": row.format,
        "rows": row.rows,
        "bytes": row.bytes,
        "masked_fields": list(row.masked),
        "sha256": row.digest,
        "state": row.state,
        "time_zone": "UTC",
        "reader_time_zone": row.reader_zone,
        "product": services().app_name,
        "product_version": services().version,
        "request_id": row.request_id,
    }


def file_name(row: ExportRow) -> str:
    """Of a fixed pattern: nothing of it was typed by anybody."""
    return f"{row.what}-{row.requested_at:%Y%m%dT%H%M%SZ}-{row.export_id.hex[-8:]}.{row.format}"


def title_of(what: str) -> str:
    """What people call the thing that was taken out."""
    return SOURCES[what].title if what in SOURCES else "Trail"


def words_of(chosen: Mapping[str, str]) -> str:
    """A filter in words."""
    said = (f"{name.replace('_', ' ')} is {chosen[name]}" for name in sorted(chosen))
    return " and ".join(said) or "everything"


def _ordered(
    what: str, chosen: Mapping[str, str], words: str, form: str, reason: str | None
) -> ResponseReturnValue:
    """Make an order that was judged whole: it counts against the hour's limit."""
    me, exporter = visitor(), _exporter()
    with services().database.connection() as connection:
        rate_limits.count(connection, rate_limits.EXPORTS, me.name)
        write_down(connection, Read("export", what, None, None, reason, Outcome.ASKED))
        export_id = exporter.order(
            connection,
            Order(
                what,
                chosen,
                words,
                form,
                me.name,
                me.role,
                request_id(),
                reason,
                preferences().zone,
            ),
        )
        _tell(connection, export_id)
    return redirect(url_for("people.export", export_id=export_id), 303)


def _tell(connection: PooledConnection, export_id: UUID) -> None:
    row = one_export(connection, export_id, None)
    if row is not None:
        outcome = Outcome.DONE if row.state == "ready" else Outcome.ASKED
        write_down(connection, Read("export", row.what, str(export_id), row.rows, None, outcome))


def _form(
    what: str,
    source: ListSource,
    chosen: Mapping[str, str],
    *,
    fault: str | None = None,
    status: int = 200,
) -> ResponseReturnValue:
    page = render_template(
        "pages/export_form.html", what=what, source=source, chosen=chosen, formats=FORMATS,
        words=words_of(chosen), fault=fault, longest=remarks.LONGEST, limit=rate_limits.EXPORTS,
    )  # fmt: skip
    return make_response(page, status)


def _source(what: str) -> ListSource:
    """The list of this name, if the visitor may see it."""
    source = SOURCES.get(what)
    if source is None:
        raise NotFound
    if not visitor().may(source.needs):
        raise Forbidden
    return source


def _read(export_id: UUID, action: str) -> ExportRow:
    with services().database.connection() as connection:
        row = one_export(connection, export_id, _whose())
        rows = row.rows if row else 0
        write_down(connection, Read(action, "export", str(export_id), rows))
    if row is None:
        raise NotFound
    return row


def _whose() -> str | None:
    """Whose exports the visitor may see; None for everybody's."""
    return None if visitor().may(Permission.VIEW_AUDIT) else visitor().name


def _exporter() -> Exporter:
    exporter = services().exporter
    if exporter is None:
        raise NotFound
    return exporter


def _format(text: str) -> str:
    if text not in FORMATS:
        raise Unfit("format", f"is one of {', '.join(FORMATS)}")
    return text


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Unfit("notice", "is a notice's id") from None


def _attached(body: Any, content_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, content_type=content_type, headers=headers)


def add_exports(blueprint: Blueprint) -> None:
    """Put the pages at their addresses."""
    add = blueprint.add_url_rule
    add("/exports", view_func=exports)
    add("/exports/new/<what>", view_func=export_form, methods=["GET"])
    add("/exports/new/<what>", view_func=order_export, methods=["POST"])
    add("/exports/trail", view_func=order_trail, methods=["POST"])
    add("/exports/<uuid:export_id>", view_func=export)
    add("/exports/<uuid:export_id>/manifest", view_func=export_manifest)
    add("/exports/<uuid:export_id>/file", view_func=export_file)
