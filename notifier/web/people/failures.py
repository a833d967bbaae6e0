"""Channel failures by normalised reason, and what lies behind one number of that table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from flask import Blueprint, make_response, render_template, url_for
from flask.typing import ResponseReturnValue

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Read
from notifier.domain.states import Channel
from notifier.store.reads import failures as reads
from notifier.store.reads import rollups
from notifier.store.reads.failures import FailureRow, Matrix, Wanted
from notifier.store.reads.rollups import HOUR, MINUTE, Trend
from notifier.web.people import rows as twins
from notifier.web.people.asked import REGION, WORD, Asked, Filter, asked
from notifier.web.people.charts import spark
from notifier.web.people.lists import Dated, List, answer_list
from notifier.web.people.phrases import UNKNOWN_WORDS
from notifier.web.people.rows import Cell
from notifier.web.people.sparks import FAILURE_SIGNALS
from notifier.web.people.visit import Form, needs, services, visitor, wanted, write_down

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

LIVE_S: Final = 15
RANGES: Final = {
    "24h": timedelta(hours=24),
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "7d": timedelta(days=7),
}
"""How far back; the first unless another is chosen."""

RANGE_WORDS: Final = {"15m": "15 minutes", "1h": "hour", "24h": "24 hours", "7d": "7 days"}
BARS: Final = 24
"""At most so many in the small drawing of a reason's row; none is shorter than a minute."""

CHANNELS: Final = tuple(map(str, Channel))
FILTERS: Final[Mapping[str, Filter]] = {
    "range": tuple(RANGES), "channel": ("", *CHANNELS), "reason": WORD, "provider": WORD,
    "region": REGION,
}  # fmt: skip
_CELL_COLUMNS: Final = ("reason", "channel", "failures", "first_at", "last_at")


@dataclass(frozen=True, slots=True)
class Line:
    """One reason's row of the table: a cell for each channel, None where it was not met."""

    word: str
    cells: tuple[reads.Cell | None, ...]

    @property
    def total(self) -> int:
        """Over all channels."""
        return sum(each.failures for each in self.cells if each)


@needs(Permission.VIEW_LISTS)
def failures() -> ResponseReturnValue:
    """The table; with a reason or a channel in the address, the failures behind that number."""
    wish = asked(**FILTERS)
    chosen = wish.chosen
    span = RANGES[chosen.get("range", next(iter(RANGES)))]
    cell = Wanted(span, *map(chosen.get, ("reason", "channel", "provider", "region")))
    return _listed(wish, cell) if cell.word or cell.channel else _matrix(wish, cell)


def _matrix(wish: Asked, cell: Wanted) -> ResponseReturnValue:
    with services().database.connection() as connection:
        page = reads.load_matrix(connection, cell)
        trend, regions = _trend(connection, page.as_of, cell)
        write_down(connection, Read("list", "failures", None, page.total))
    links = {"failures": url_for("people.failures", **wish.address())}
    plain = map(_matrix_cells, page.cells)
    twin = twins.for_programs(wanted(), "failures", _CELL_COLUMNS, plain, page.as_of, links)
    match wanted():
        case _ if twin is not None:
            return twin
        case form:
            folder = "pages/" if form is Form.PAGE else "fragments/_"
            return make_response(
                render_template(
                    f"{folder}failures.html", page=page, wish=wish, lines=lines_of(page),
                    sparks={line.word: spark(trend.values(line.word)) for line in lines_of(page)},
                    regions=regions,
                    channels=CHANNELS, range_words=RANGE_WORDS,
                    live_s=LIVE_S if wish.live else None,
                )
            )  # fmt: skip


def _trend(
    connection: PooledConnection, now: datetime, cell: Wanted
) -> tuple[Trend, tuple[str, ...]]:
    """How often each reason was met over the range, and the regions.

    Bars are of whole minutes or whole hours; the last one is not over.
    """
    width = max(MINUTE, cell.span / BARS)
    until = now.replace(second=0, microsecond=0) + MINUTE
    if width >= HOUR:
        until = rollups.hour_of(now) + HOUR
    length = round(cell.span / width)
    since = until - length * width
    narrowed = {"region": cell.region, "provider": cell.provider}
    trend = rollups.load_trend(connection, since, width, length, FAILURE_SIGNALS, narrowed)
    return trend, rollups.load_regions(connection, since, until, FAILURE_SIGNALS)


def lines_of(page: Matrix) -> tuple[Line, ...]:
    """The rows of the table, the most frequent first; words that we do not know stand last."""
    at = {(each.word, each.channel): each for each in page.cells}
    words = {each.word for each in page.cells} | set(UNKNOWN_WORDS)
    lines = [Line(word, tuple(at.get((word, each)) for each in CHANNELS)) for word in words]
    return tuple(
        sorted(lines, key=lambda line: (line.word in UNKNOWN_WORDS, -line.total, line.word))
    )


def _matrix_cells(cell: reads.Cell) -> Mapping[str, Cell]:
    return {
        "reason": cell.word, "channel": cell.channel, "failures": cell.failures,
        "first_at": cell.first_at, "last_at": cell.last_at,
    }  # fmt: skip


def _row_cells(row: FailureRow, _: Dated) -> Mapping[str, Cell]:
    return {
        "at": row.at, "notification_id": str(row.notice_id), "seq": row.seq,
        "event_id": row.event_id, "channel": row.channel.value, "failure": row.word,
        "reason": row.reason, "provider": row.provider, "provider_code": row.provider_code,
        "attempt": row.attempt, "notice_state": row.state.value,
    }  # fmt: skip


LISTED: Final = List(
    "failures_listed", LIVE_S,
    ("at", "notification_id", "seq", "event_id", "channel", "failure", "reason", "provider",
     "provider_code", "attempt", "notice_state"),
    _row_cells,
)  # fmt: skip


def _listed(wish: Asked, cell: Wanted) -> ResponseReturnValue:
    with_codes = visitor().may(Permission.SEE_PROVIDER_CODES)
    with services().database.connection() as connection:
        page = reads.load_failures(connection, wish.walk, cell, with_codes=with_codes)
        named = "/".join(filter(None, (cell.word, cell.channel, cell.provider)))
        write_down(connection, Read("list", "failures", named, len(page.rows)))
    return answer_list(
        LISTED, page, wish, with_codes=with_codes, range_words=RANGE_WORDS, channels=CHANNELS
    )


def add_failures(blueprint: Blueprint) -> None:
    """Put the page at its address."""
    blueprint.add_url_rule("/failures", view_func=failures)
