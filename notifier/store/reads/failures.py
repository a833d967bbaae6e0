"""How channels fail: by normalised reason and channel, and the single failures of one cell.

A failure is a step of the trail that failed a delivery, told that a provider did not take an
attempt, reported a hard failure too late to move anything, or used a word that we do not know.
An outcome that is unknown is none. Only the newest failures of the range are counted, so that
the worst day costs no more than `COUNT_CAP` rows of an index, whatever they are narrowed to. A
list goes on behind them: each page walks the index from its own place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.domain.states import Channel, NoticeState
from notifier.store.reads.outside_text import shown
from notifier.store.reads.paging import COUNT_CAP, Cursor, Found, Page, Walk

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

FAILED: Final = """(reason IN ('not_accepted', 'unmapped')
       OR (to_state = 'failed' AND from_state <> 'failed')
       OR (reason IN ('late_receipt', 'contradicting_receipt') AND from_state <> 'failed'
           AND evidence ->> 'status' = 'failed'))"""
"""The predicate of the index `transition_failures`, word for word: else it is not used."""

# From the index alone. An unmapped word has a row of its own, whatever detail its adapter gave it.
_WALK: Final = f"""
        SELECT recorded_at, notice_id, seq, channel, provider,
               CASE WHEN reason = 'unmapped' THEN reason ELSE coalesce(detail, reason) END AS word
          FROM transition
         WHERE {FAILED} AND recorded_at > %(since)s {{bounds}}
         ORDER BY recorded_at {{order}}, notice_id {{order}}, seq {{order}}
         LIMIT {COUNT_CAP + 1}
"""
_NEWEST: Final = _WALK.format(bounds="", order="DESC")

# The region stands with the event, so that each failure costs one look there. As EXISTS it would
# become a join, which reads all events to hash them.
_HERE: Final = """(%(region)s::text IS NULL OR
           (SELECT e.region FROM reset_event AS e WHERE e.notice_id = seen.notice_id) = %(region)s)
"""

_CELLS: Final = f"""
    WITH seen AS MATERIALIZED ({_NEWEST}),
         told AS MATERIALIZED (SELECT seen.*, coalesce({_HERE}, false) AS here FROM seen)
    SELECT here, word, channel, provider, count(*) AS failures,
           min(recorded_at) AS first_at, max(recorded_at) AS last_at
      FROM told GROUP BY here, word, channel, provider
"""

_IN_CELL: Final = f"""
           (%(word)s::text IS NULL OR seen.word = %(word)s)
       AND (%(channel)s::text IS NULL OR seen.channel = %(channel)s)
       AND (%(provider)s::text IS NULL OR seen.provider = %(provider)s) AND {_HERE}
"""

_ROWS: Final = f"""
    WITH page AS MATERIALIZED (
        SELECT seen.* FROM ({_WALK}) AS seen WHERE {_IN_CELL}
         ORDER BY recorded_at {{order}}, notice_id {{order}}, seq {{order}} LIMIT %(limit)s)
    SELECT page.recorded_at, page.notice_id, page.seq, page.channel, page.provider, page.word,
           t.event_id, t.attempt, t.from_state, t.to_state, t.reason, n.state,
           t.evidence ->> 'code' AS provider_code
      FROM page JOIN transition AS t USING (notice_id, seq) JOIN notice AS n USING (notice_id)
     ORDER BY page.recorded_at {{order}}, page.notice_id {{order}}, page.seq {{order}}
"""

# How many there are, and how many came to be after the first page was read.
_COUNT: Final = f"""
    WITH seen AS MATERIALIZED ({_NEWEST})
    SELECT count(*) > {COUNT_CAP} AS is_capped,
           count(*) FILTER (WHERE recorded_at <= %(upto)s AND {_IN_CELL}) AS total,
           count(*) FILTER (WHERE recorded_at > %(upto)s AND {_IN_CELL}) AS fresh
      FROM seen
"""
_EDGE: Final = f"SELECT recorded_at, notice_id, seq FROM ({_WALK}) AS walked OFFSET {COUNT_CAP}"


@dataclass(frozen=True, slots=True)
class Cell:
    """How often one reason was met on one channel, and from when to when."""

    word: str
    channel: str
    failures: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Matrix:
    """All cells of the range. `providers` are those met in it, also where one is chosen.

    `since` is where counting began: later than was asked for where `is_capped`, which says that
    there are more failures than are looked at, in whichever region.
    """

    cells: tuple[Cell, ...]
    providers: tuple[str, ...]
    since: datetime
    is_capped: bool
    as_of: datetime

    @property
    def total(self) -> int:
        """All failures that were counted."""
        return sum(each.failures for each in self.cells)


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One failure. `provider_code` is the provider's own, None unless asked for."""

    at: datetime
    notice_id: UUID
    seq: int
    event_id: str
    channel: Channel
    word: str
    reason: str
    provider: str | None
    provider_code: str | None
    attempt: int | None
    from_state: str | None
    to_state: str | None
    state: NoticeState


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of the failures is asked for; None leaves a part open."""

    span: timedelta
    word: str | None = None
    channel: str | None = None
    provider: str | None = None
    region: str | None = None


def load_matrix(connection: PooledConnection, wanted: Wanted) -> Matrix:
    """The cells of the range, all of one provider where one is wanted."""
    now = _now(connection)
    since = now - wanted.span
    values = {"since": since, "region": wanted.region}
    walked = connection.execute(_CELLS, values).fetchall()
    is_capped = sum(row["failures"] for row in walked) > COUNT_CAP
    if is_capped:
        since = min(row["first_at"] for row in walked)
    found = [row for row in walked if row["here"]]
    providers = sorted({str(shown(row["provider"])) for row in found if row["provider"]})
    cells: dict[tuple[str, str], Cell] = {}
    for row in found:
        if wanted.provider in {None, row["provider"]}:
            _add(cells, row)
    return Matrix(tuple(cells.values()), tuple(providers), since, is_capped, now)


def _add(cells: dict[tuple[str, str], Cell], row: Mapping[str, Any]) -> None:
    """Fold one provider's share into its cell."""
    key = (str(shown(row["word"])), row["channel"])
    first, last, failures = row["first_at"], row["last_at"], row["failures"]
    if known := cells.get(key):
        first, last = min(first, known.first_at), max(last, known.last_at)
        failures += known.failures
    cells[key] = Cell(*key, failures, first, last)


def load_failures(
    connection: PooledConnection, walk: Walk, wanted: Wanted, *, with_codes: bool
) -> Page[FailureRow]:
    """One page of the failures of a cell, latest first; the range ends with the first page."""
    now = _now(connection)
    upto = walk.upto or now
    values: dict[str, object] = {
        "since": upto - wanted.span, "upto": upto, "word": wanted.word, "channel": wanted.channel,
        "provider": wanted.provider, "region": wanted.region, "limit": walk.size + 1,
    }  # fmt: skip
    compare, order = walk.words(descending=True)
    bounds = "AND recorded_at <= %(upto)s"
    if walk.cursor is not None:
        notice_id, _, seq = walk.cursor.row_id.partition("/")
        bounds += f" AND (recorded_at, notice_id, seq) {compare} (%(at)s, %(id)s, %(seq)s)"
        values |= {"at": walk.cursor.at, "id": notice_id, "seq": int(seq)}
    found = connection.execute(_ROWS.format(bounds=bounds, order=order), values).fetchall()
    count = connection.execute(_COUNT, values).fetchone()
    assert count is not None  # noqa: S101 - an aggregate has one row
    kept, earlier, later = walk.cut(found, _key, now)
    if len(found) <= walk.size:
        edge = connection.execute(_EDGE.format(bounds=bounds, order=order), values).fetchone()
        if edge is not None:
            beyond = Cursor(*_key(edge), forward=walk.forward, upto=upto)
            earlier, later = (earlier, beyond) if walk.forward else (beyond, later)
    rows = tuple(_row(each, with_codes=with_codes) for each in kept)
    return Page(
        rows, earlier, later, count["total"], count["is_capped"], now, count["fresh"], walk.upto
    )  # fmt: skip


def _now(connection: PooledConnection) -> datetime:
    row = connection.execute("SELECT db_now() AS now").fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    now: datetime = row["now"]
    return now


def _key(row: Found) -> tuple[datetime, str]:
    return row["recorded_at"], f"{row['notice_id']}/{row['seq']}"


def _row(row: Found, *, with_codes: bool) -> FailureRow:
    fields = {name: value for name, value in row.items() if name != "recorded_at"}
    fields |= {name: shown(row[name]) for name in ("word", "provider", "provider_code")}
    if not with_codes:
        fields["provider_code"] = None
    fields |= {"channel": Channel(row["channel"]), "state": NoticeState(row["state"])}
    return FailureRow(at=row["recorded_at"], **fields)
